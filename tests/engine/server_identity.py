#!/usr/bin/env python3
"""Asks a bare llama-server and one with the plugin the same questions; every answer must be the same bit for bit.

An answer is the server's whole JSON (text, tokens, top log probabilities, slot, counts of cached and computed tokens)
without ids and times. Which requests share a batch changes rounding, in the bare server too, so no request may meet
another by chance. The protocol is deterministic and still fills all four slots:
  sequential  one request at a time, pinned to a slot by id_slot, over shared prefixes: reuse within a slot, and states
              moved between slots by the server's prompt cache; by /completion and by /v1/chat/completions.
  concurrent  many requests in ONE call, which the server queues under one lock: an array of eight prompts (four start
              together, the others enter one by one as stop words free the slots: continuous batching), or a chat
              with n = 4 (one prompt, its state copied to three more slots).
  cancelled   a streaming call, one prompt or an array of two, whose socket is closed after a few tokens; these few are
              compared. How many more the server computes is chance, so the next call falls on the same slots and
              parts from the cancelled prompts before their end, and no other prompt resembles them.
Rule: if answers differ, the bare server runs once more. A difference is real, and the exit code 1, where the two bare
runs agree; where they differ too it is called noise (a deterministic protocol should show none) and does not fail.
Exit code: 0 no real difference, 1 a real difference, 2 wrong usage or a failed server, 77 skipped for lack of a text.
"""
from __future__ import annotations

import argparse
import http.client
import itertools
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
HOST = "127.0.0.1"
PHASES = ("sequential", "concurrent", "cancelled")
SLOTS = 4
BLOCK = 20  # requests of one block of the plan
EVENTS = 4  # streamed events read from each request before it is cancelled
START_TIMEOUT, CALL_TIMEOUT, IDLE_TIMEOUT, STOP_TIMEOUT = 120, 120, 60, 30  # seconds
Answer = tuple[str, str]  # phase and JSON


class Failure(Exception):
    """A wrong flag or a server that failed: nothing was compared."""


@dataclass(frozen=True)
class Step:
    """One HTTP call and the number of answers it brings."""
    phase: str
    path: str
    body: dict
    answers: int


def parse_arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bin", type=Path, default=ROOT / "build/release/bin", help="folder of the engine's programs")
    p.add_argument("--plugin", type=Path, help="plugin to load (default: libggml-cascade.so in --bin)")
    p.add_argument("--model", type=Path, default=ROOT / ".deps/models/smollm2-135m-instruct-q4_1.gguf")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--mode", default="exact", help="value of GGML_CASCADE for the plugin (default: exact)")
    p.add_argument("--text", type=Path, default=ROOT.parent / "shared/data/wiki.test.raw", help="text to make prompts from")
    p.add_argument("--requests", type=int, default=200, help=f"rounded up to a multiple of {BLOCK} (default: 200)")
    p.add_argument("--quick", action="store_const", dest="requests", const=60, help="60 requests")
    p.add_argument("--server-args", default="", help="more arguments for both servers, as one string")
    p.add_argument("--control", action="store_true", help="the second server is bare too: shows that the protocol repeats")
    p.add_argument("--ours-args", default="", help=argparse.SUPPRESS)  # for the second server alone: must be noticed
    p.add_argument("-o", "--output", choices=["table", "json"], default="table")
    args = p.parse_args()
    args.plugin = args.plugin or args.bin / "libggml-cascade.so"
    return args


def require(path: Path, flag: str, remedy: str) -> None:
    if not path.is_file():
        raise Failure(f"{flag}: no file {path}; {remedy}")


def completion(phase: str, prompt: str | list[str], predict: int, **more: object) -> Step:
    body = {"prompt": prompt, "n_predict": predict, "n_probs": 5, "temperature": 0, "seed": 1, "cache_prompt": True,
            "return_tokens": True, **more}
    return Step(phase, "/completion", body, 1 if isinstance(prompt, str) else len(prompt))


def chat(phase: str, prompt: str, predict: int, **more: object) -> Step:
    body = {"messages": [{"role": "user", "content": prompt}], "max_tokens": predict, "logprobs": True, "top_logprobs": 5,
            "temperature": 0, "seed": 1, "cache_prompt": True, **more}
    return Step(phase, "/v1/chat/completions", body, int(more.get("n", 1)))


def cancelled_and_next(take: Callable[[int], str], prompts: int, **more: object) -> list[Step]:
    """The next prompts keep over half of what the slots can hold by then, so the server finds them the same slots."""
    begun = [take(120) for _ in range(prompts)]
    cut = [f"{b} {take(30)}" for b in begun]
    following = [f"{b} {take(20)}" for b in begun]
    return [completion("cancelled", cut, 64, stream=True, ignore_eos=True, **more),
            completion("sequential" if prompts == 1 else "concurrent", following, 8, **more)]


def plan(text: str, requests: int) -> list[Step]:
    """The calls, the same for every server, over passages that follow each other in the text."""
    if len(text.split()) < 10000:
        raise Failure("--text: fewer than 10000 words; give a longer text")
    words = itertools.cycle(text.split())
    take = lambda count: " ".join(itertools.islice(words, count))
    steps: list[Step] = []
    prefixes: list[str] = []
    for block in range((requests + BLOCK - 1) // BLOCK):
        prefixes.append(take(90))
        for i in range(6):
            prefix = prefixes[max(0, block - 2)] if i >= 4 and block % 2 else prefixes[block]
            steps.append((chat if i % 2 else completion)("sequential", f"{prefix} {take(15 + 3 * i)}",
                                                         8 + (block * 6 + i) * 7 % 17, id_slot=(block + i) % SLOTS))
        steps += cancelled_and_next(take, 1, id_slot=block % SLOTS)
        prompts = [f"{prefixes[block]} {take(20)}" if i % 2 else take(40 + 10 * i) for i in range(8)]
        steps.append(completion("concurrent", prompts, 24, stop=[".", " and", " of the"]))
        steps += cancelled_and_next(take, 2) if block % 2 else [chat("concurrent", take(60), 16, n=4)]
    return steps


@contextmanager
def exchange(port: int, method: str, path: str, body: dict | None = None) -> Iterator[http.client.HTTPResponse]:
    """An answered call; leaving closes its socket, wherever the reading has got to."""
    connection = http.client.HTTPConnection(HOST, port, timeout=CALL_TIMEOUT)
    try:
        connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
        with connection.getresponse() as response:
            if response.status != 200:
                raise Failure(f"{path} answered {response.status}: {response.read(300).decode(errors='replace')}")
            yield response
    finally:
        connection.close()


def call(port: int, method: str, path: str, body: dict | None = None) -> object:
    with exchange(port, method, path, body) as response:
        return json.loads(response.read())


def stable(reply: dict) -> dict:
    """The reply without what may differ between two runs of the same server."""
    kept = {k: v for k, v in reply.items() if k not in ("id", "created")}
    if "timings" in kept:
        kept["timings"] = {k: v for k, v in kept["timings"].items() if k.endswith("_n")}
    return kept


def finished(port: int, step: Step) -> list[object]:
    reply = call(port, "POST", step.path, step.body)
    parts = [stable(r) for r in (reply if isinstance(reply, list) else [reply])]
    if step.answers > 1 and "choices" in parts[0]:
        parts = [{**parts[0], "choices": [choice]} for choice in parts[0]["choices"]]
    return parts


def cancelled(port: int, step: Step) -> list[object]:
    """The first events of each streamed request; returns when the server has noticed the closed socket."""
    events: list[list[dict]] = [[] for _ in range(step.answers)]
    with exchange(port, "POST", step.path, step.body) as response:
        while min(map(len, events)) < EVENTS:
            line = response.readline()
            if not line:
                raise Failure("a stream ended before it could be cancelled")
            if line.startswith(b"data: {"):
                event = json.loads(line[len("data: "):])
                events[event["index"]].append(stable(event))
    end = time.monotonic() + IDLE_TIMEOUT
    while any(slot["is_processing"] for slot in call(port, "GET", "/slots")):
        if time.monotonic() > end:
            raise Failure(f"slots are busy {IDLE_TIMEOUT} s after a call was closed: cancelling does not work")
        time.sleep(0.02)
    return [of[:EVENTS] for of in events]


def ask(port: int, step: Step) -> list[Answer]:
    parts = (cancelled if step.phase == "cancelled" else finished)(port, step)
    if len(parts) != step.answers:
        raise Failure(f"{step.path} gave {len(parts)} answers where {step.answers} were asked for")
    return [(step.phase, json.dumps(part, sort_keys=True)) for part in parts]


def wait_healthy(server: subprocess.Popen, port: int) -> None:
    end = time.monotonic() + START_TIMEOUT
    while time.monotonic() < end and server.poll() is None:
        try:
            call(port, "GET", "/health")
            return
        except (OSError, http.client.HTTPException, Failure):
            time.sleep(0.1)
    raise Failure(f"llama-server was not ready within {START_TIMEOUT} s (exit code {server.poll()})")


@contextmanager
def running(args: argparse.Namespace, env: dict[str, str], extra: str, log: Path) -> Iterator[tuple[int, int]]:
    """Process id and port of a healthy server; on leaving, the server has ended, whatever happened."""
    with socket.socket() as free:
        free.bind((HOST, 0))
        port = free.getsockname()[1]
    command = [str(args.bin / "llama-server"), "-m", str(args.model), "--host", HOST, "--port", str(port), "--offline",
               "-np", str(SLOTS), "--cont-batching", "-c", "4096", "-t", str(args.threads),
               *shlex.split(args.server_args), *shlex.split(extra)]
    with log.open("wb") as out:
        server = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
    try:
        wait_healthy(server, port)
        yield server.pid, port
    except (OSError, http.client.HTTPException, Failure) as error:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
        raise Failure(f"{str(error) or repr(error)}; the server (exit code {server.poll()}) said last:\n{tail}") from None
    finally:
        server.terminate()
        try:
            server.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait(STOP_TIMEOUT)


def play(args: argparse.Namespace, name: str, steps: list[Step], folder: Path, extra: str = "") -> list[Answer]:
    """The answers of one fresh server to all the calls; with the plugin if the name says so."""
    start = time.monotonic()
    stats, log, plugin = folder / "stats", folder / "log", str(args.plugin.resolve())
    env = {k: v for k, v in os.environ.items() if k != "GGML_BACKEND_PATH" and not k.startswith("GGML_CASCADE")}
    if name == "plugin":
        env |= {"GGML_BACKEND_PATH": plugin, "GGML_CASCADE": args.mode, "GGML_CASCADE_STATS": str(stats)}
    with running(args, env, extra, log) as (pid, port):
        if name == "plugin" and plugin not in Path(f"/proc/{pid}/maps").read_text():
            raise Failure(f"--plugin: {plugin} is not loaded by llama-server; is it built for the engine in --bin?")
        answers = [answer for step in steps for answer in ask(port, step)]
    if name == "plugin" and "cascade" in args.plugin.name:
        records = [json.loads(line) for line in (stats.read_text().splitlines() if stats.is_file() else [])]
        if sum(r.get("graphs", 0) for r in records if r.get("type") == "summary") == 0:
            raise Failure("--plugin: loaded, but its GGML_CASCADE_STATS counts no graphs: nothing was compared")
    reused = sum('"cache_n": ' in text and '"cache_n": 0,' not in text for _, text in answers)
    dropped = log.read_text(errors="replace").count("cancel task")
    print(f"{name}: {len(answers)} answers, {reused} over a cached prefix, {dropped} dropped by the server on cancelling, "
          f"{time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    return answers


def difference(bare: str, ours: str) -> str:
    at = len(os.path.commonprefix([bare, ours]))
    return f"after {bare[max(0, at - 60):at]!r} bare has {bare[at:at + 30]!r}, ours {ours[at:at + 30]!r}"


def report(output: str, bare: list[Answer], ours: list[Answer], again: list[Answer]) -> int:
    """Prints the result and returns the number of real differences; again is a second bare run, or the same."""
    differ = [i for i in range(len(bare)) if bare[i] != ours[i]]
    noise = [i for i in differ if again[i] != bare[i]]
    for i in differ[:10]:
        print(f"{'noise' if i in noise else 'DIFFERS'}: answer {i} ({bare[i][0]}): {difference(bare[i][1], ours[i][1])}",
              file=sys.stderr)
    asked = {p: sum(phase == p for phase, _ in bare) for p in PHASES}
    same = {p: n - sum(bare[i][0] == p for i in differ) for p, n in asked.items()}
    real, unsteady = len(differ) - len(noise), sum(a != b for a, b in zip(again, bare))
    if output == "json":
        print(json.dumps({"answers": asked, "identical": same, "differ": real, "noise": len(noise),
                          "bare_runs_differ": unsteady}, indent=1))
    else:
        print("phase       answers  identical", *(f"{p:<12}{asked[p]:>7}{same[p]:>11}" for p in PHASES), sep="\n")
    if differ:
        print(f"two bare runs differ in {unsteady} answers; of {len(differ)} differences of ours {len(noise)} are noise "
              f"(the bare runs differ there too), {real} are real", file=sys.stderr)
    print(f"server identity: {sum(same.values())} of {len(bare)} answers identical "
          f"({', '.join(f'{p} {n}' for p, n in asked.items())})", file=sys.stderr if output == "json" else sys.stdout)
    return real


def main() -> int:
    args = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the server is ended too
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # waiting threads sleep: on a busy machine far faster, else alike
    if not args.text.is_file():
        print(f"server_identity: skipped, no text at {args.text}; give one by --text FILE", file=sys.stderr)
        return 77
    require(args.bin / "llama-server", "--bin", "build the project, or name the folder of the engine's programs")
    require(args.model, "--model", "run scripts/get-models, or give a GGUF file")
    if not args.control:
        require(args.plugin, "--plugin", "build the project, or name the plugin's file")
    steps = plan(args.text.read_text(errors="replace"), args.requests)
    with tempfile.TemporaryDirectory(prefix="server-identity-") as name:
        bare = play(args, "bare", steps, Path(name))
        ours = play(args, "bare again" if args.control else "plugin", steps, Path(name), args.ours_args)
        again = bare if ours == bare else play(args, "bare, to judge the differences", steps, Path(name))
    return 1 if report(args.output, bare, ours, again) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        print(f"server_identity: {failure}", file=sys.stderr)
        sys.exit(2)
