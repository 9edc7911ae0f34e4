#!/usr/bin/env python3
"""Stock llama.cpp programs with the plugin: each loads it, computes with it and gives the bare program's answer.

Usage: programs.py --bin DIR --model FILE [--foreign PLUGIN]
Exit code 0: all hold; 77: the model isn't there (scripts/get-models fetches it).
"""
import argparse
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

SKIP = 77


class Programs:
    timeout = 300  # seconds for one run

    def __init__(self, bin_dir: pathlib.Path, model: pathlib.Path) -> None:
        self.bin = bin_dir
        self.model = str(model)
        self.plugin = bin_dir / "libggml-cascade.so"

    def environment(self, mode: str | None, plugin: pathlib.Path | None = None, **more: str) -> dict[str, str]:
        env = {k: v for k, v in os.environ.items() if not k.startswith(("GGML_", "LLAMA_"))}
        if mode is not None:
            env |= {"GGML_BACKEND_PATH": str(plugin or self.plugin), "GGML_CASCADE": mode}
        if mode in ("near", "balanced"):  # on covers wherever it can be done, whatever this machine finds cheaper
            env |= {"GGML_CASCADE_WAY": "joint", "GGML_CASCADE_COSTS": "-"}
        return env | more

    def run(self, program: str, *args: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([str(self.bin / program), *args], env=env, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, errors="replace", timeout=self.timeout)
        assert done.returncode == 0, f"{program} failed:\n{done.stderr[-2000:]}"
        return done

    def complete(self, *args: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
        return self.run("llama-completion", "-m", self.model, "-p", "The river rises in the", "-n", "12", "-t", "2",
                        "-no-cnv", "--temp", "0", *args, env=env)


def summary_of(stats: pathlib.Path) -> dict:
    lines = [json.loads(line) for line in stats.read_text().splitlines()]
    return [line for line in lines if line["type"] == "summary"][-1]


def resolved(log: str) -> list[str]:
    """What the engine decided about fused ops, its timestamps left out."""
    return [re.sub(r"^\S+ \S ", "", line) for line in log.splitlines() if "resolve_fused_ops" in line]


def bench_names_it(p: Programs, tmp: pathlib.Path) -> None:
    out = p.run("llama-bench", "-m", p.model, "-p", "32", "-n", "4", "-r", "1", "-t", "2", "-o", "json",
                env=p.environment("exact")).stdout
    backends = {row["backends"] for row in json.loads(out)}
    assert backends == {"Cascade"}, backends


def every_program_lists_the_device(p: Programs, tmp: pathlib.Path) -> None:
    for program in ("llama-bench", "llama-completion", "llama-perplexity", "llama-server"):
        done = p.run(program, "--list-devices", env=p.environment("exact"))
        assert "Cascade: " in done.stdout + done.stderr, program


def completion_is_identical_and_auto_resolves_alike(p: Programs, tmp: pathlib.Path) -> None:
    stats = tmp / "completion.jsonl"
    bare = p.complete("-lv", "4", env=p.environment(None))
    ours = p.complete("-lv", "4", env=p.environment("exact", GGML_CASCADE_STATS=str(stats)))
    assert bare.stdout == ours.stdout, (bare.stdout, ours.stdout)
    assert resolved(bare.stderr) == resolved(ours.stderr), (resolved(bare.stderr), resolved(ours.stderr))
    assert any("Flash Attention" in line and "enabled" in line for line in resolved(ours.stderr)), "no -fa auto in the log"
    summary = summary_of(stats)
    assert summary["graphs"] > 10 and summary["failures"] == 0, summary
    assert summary["graphs_recognised"] > summary["graphs"] / 2, summary  # decoding reuses its graph


def reference_takes_every_attention(p: Programs, tmp: pathlib.Path) -> None:
    for flash in ("on", "off"):
        stats = tmp / f"reference-{flash}.jsonl"
        p.complete("-fa", flash, env=p.environment("reference", GGML_CASCADE_STATS=str(stats)))
        summary = summary_of(stats)
        assert summary["sites_taken"] > 0 and summary["sites_left"] == {}, summary
        assert summary["graphs_rewritten"] == summary["graphs"], summary
        assert summary["seconds_ours"] > 0, summary


def a_failing_node_leaves_the_engines_answer(p: Programs, tmp: pathlib.Path) -> None:
    bare = p.complete(env=p.environment(None)).stdout
    for fault in ("read", "rewrite", "scratch", "node"):
        ours = p.complete(env=p.environment("reference", GGML_CASCADE_FAULT=fault))
        assert ours.stdout == bare, fault
        warnings = [line for line in ours.stderr.splitlines() if line.startswith("cascade: ")]
        assert len(warnings) == 1, warnings


def off_and_unknown_modes(p: Programs, tmp: pathlib.Path) -> None:
    stats = tmp / "off.jsonl"
    p.complete(env=p.environment("off", GGML_CASCADE_STATS=str(stats)))
    assert not stats.exists(), "mode off computed something"
    unknown = p.complete(env=p.environment("fastest"))
    lines = [line for line in unknown.stderr.splitlines() if line.startswith("cascade: ")]
    assert len(lines) == 1 and "GGML_CASCADE=fastest" in lines[0], lines


def a_foreign_engine_is_refused(p: Programs, tmp: pathlib.Path, foreign: pathlib.Path) -> None:
    done = p.complete(env=p.environment("exact", foreign))
    lines = [line for line in done.stderr.splitlines() if line.startswith("cascade: ")]
    assert len(lines) == 1 and "not loaded" in lines[0] and "0000000" in lines[0], lines
    assert "loaded Cascade backend" not in done.stderr


def cascade_graph_shows_every_layer(p: Programs, tmp: pathlib.Path) -> None:
    for flash, form in (("on", "flash"), ("off", "softmax"), ("auto", "flash")):
        done = p.run("cascade", "graph", "-m", p.model, "-fa", flash, "-o", "json", env=p.environment(None))
        graph = json.loads(done.stdout)
        assert done.stderr == "" and graph["unrecognised"] == [] and len(graph["layers"]) == 30, done.stderr
        for index, layer in enumerate(graph["layers"]):
            shape = [layer[key] for key in ("index", "attention", "heads", "kv_heads", "head_size", "sliding_window")]
            assert shape == [index, form, 9, 3, 64, 0], shape
            sites = sorted(site["site"] for site in layer["linear"])
            assert sites == ["attn_k", "attn_output", "attn_q", "attn_v", "ffn_down", "ffn_gate", "ffn_up"], sites
    table = p.run("cascade", "graph", "-m", p.model, env=p.environment(None)).stdout
    assert "0-29" in table and "unrecognised: nothing" in table, table
    wrong = subprocess.run([str(p.bin / "cascade"), "graph", "-m", "nowhere.gguf"], capture_output=True, text=True)
    assert wrong.returncode == 2 and "--model" in wrong.stderr, wrong


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(port: int, process: subprocess.Popen) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        assert process.poll() is None, "the server ended"
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError("the server doesn't answer")


def perplexity_loads_it(p: Programs, tmp: pathlib.Path) -> None:
    text = tmp / "text.txt"
    text.write_text("The quick brown fox jumps over the lazy dog. " * 60)
    stats = tmp / "perplexity.jsonl"
    args = ("-m", p.model, "-f", str(text), "-c", "128", "-t", "2")
    bare = p.run("llama-perplexity", *args, env=p.environment(None))
    ours = p.run("llama-perplexity", *args, env=p.environment("exact", GGML_CASCADE_STATS=str(stats)))
    estimate = re.compile(r"Final estimate: PPL = \S+ \+/- \S+")
    assert estimate.findall(bare.stdout + bare.stderr) == estimate.findall(ours.stdout + ours.stderr) != []
    assert summary_of(stats)["graphs"] > 0


def server_loads_it(p: Programs, tmp: pathlib.Path) -> None:
    stats = tmp / "server.jsonl"
    port = free_port()
    server = subprocess.Popen([str(p.bin / "llama-server"), "-m", p.model, "--host", "127.0.0.1", "--port", str(port),
                               "-c", "512", "-t", "2"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              env=p.environment("exact", GGML_CASCADE_STATS=str(stats)))
    try:
        wait_for(port, server)
        body = json.dumps({"prompt": "One two three", "n_predict": 4, "temperature": 0}).encode()
        end = time.monotonic() + 120
        while True:  # 503 while the model loads
            try:
                request = urllib.request.Request(f"http://127.0.0.1:{port}/completion", body)
                answer = json.load(urllib.request.urlopen(request, timeout=60))
                break
            except urllib.error.HTTPError:
                assert time.monotonic() < end, "the server never loaded its model"
                time.sleep(0.2)
        assert answer["content"]
    finally:
        server.terminate()
        server.wait(30)
    assert summary_of(stats)["graphs"] > 0


def rpc_answer(p: Programs, tmp: pathlib.Path, device: str, mode: str) -> tuple[str, list[dict]]:
    """What a bare client gets from a worker on this device, and what the plugin there says it did."""
    stats = tmp / f"{device}-{mode}.jsonl"
    port = free_port()
    with open(tmp / f"{device}-{mode}.log", "w+") as log:
        worker = subprocess.Popen([str(p.bin / "rpc-server"), "-d", device, "-p", str(port), "-t", "2"],
                                  stdout=log, stderr=log, env=p.environment(mode, GGML_CASCADE_STATS=str(stats)))
        try:
            wait_for(port, worker)
            answer = p.complete("--rpc", f"127.0.0.1:{port}", "-ngl", "99", env=p.environment(None)).stdout
        finally:
            worker.terminate()
            worker.wait(30)
        log.seek(0)
        assert f"{device}: " in log.read(), "the worker doesn't name its device"
    return answer, [json.loads(line) for line in stats.read_text().splitlines()] if stats.exists() else []


def rpc_worker_computes_with_it(p: Programs, tmp: pathlib.Path) -> None:
    cpu, nothing = rpc_answer(p, tmp, "CPU", "exact")
    exact, graphs = rpc_answer(p, tmp, "Cascade", "exact")
    assert cpu == exact and not nothing and graphs, (cpu, exact)
    _, graphs = rpc_answer(p, tmp, "Cascade", "reference")
    sites = [site for graph in graphs if graph["type"] == "graph" for site in graph["attention"]]
    assert sites and all(site["taken"] for site in sites), sites[:2]
    # a worker's graphs have no uid and are known by content: a dozen tokens, but few graphs read
    assert sum(graph["type"] == "graph" for graph in graphs) <= 5, len(graphs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--foreign", type=pathlib.Path, help="a plugin built for another engine")
    parser.add_argument("--only", help="run the checks whose name contains this")
    args = parser.parse_args()
    if not args.model.exists():
        print(f"skipped: {args.model.name} is missing; scripts/get-models fetches it")
        return SKIP
    p = Programs(args.bin.resolve(), args.model.resolve())
    checks = [bench_names_it, every_program_lists_the_device, completion_is_identical_and_auto_resolves_alike, reference_takes_every_attention,
              a_failing_node_leaves_the_engines_answer, off_and_unknown_modes, perplexity_loads_it, server_loads_it, cascade_graph_shows_every_layer,
              rpc_worker_computes_with_it]
    if args.foreign:
        checks.append(lambda programs, tmp: a_foreign_engine_is_refused(programs, tmp, args.foreign.resolve()))
        checks[-1].__name__ = "a_foreign_engine_is_refused"
    for check in checks:
        if args.only and args.only not in check.__name__:
            continue
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as tmp:
            check(p, pathlib.Path(tmp))
        print(f"ok  {check.__name__}  {time.monotonic() - start:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
