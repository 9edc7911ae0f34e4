#!/usr/bin/env python3
"""cascade tune on a real model: epsilons that keep the promise, in a sidecar that stock programs use for this model and no other.

Usage: tune.py --bin DIR --model FILE --f32 FILE
Exit code 0: all hold; 77: a model isn't there (scripts/get-models fetches it, the test engine.f32_model makes the other).
"""
from __future__ import annotations

import argparse
import hashlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/support"), str(ROOT / "tests/engine")]
from checks import run_checks  # noqa: E402
from programs import SKIP, Programs  # noqa: E402
from summary import summaries_of  # noqa: E402

LAYERS = 30  # SmolLM2 135M
CONTEXT = 1536
KL, TOP1 = 0.02, 90  # one window: intervals are wide


class Tune:
    def __init__(self, programs: Programs, f32: pathlib.Path, tmp: pathlib.Path) -> None:
        self.p, self.f32, self.tmp = programs, str(f32), tmp
        self.text = tmp / "documents.txt"
        self.text.write_text("\n".join((ROOT / name).read_text() for name in ("docs/method.md", "docs/plugin.md", "HACKING.md")))
        self.tuning: dict = {}
        self.sidecar = tmp / "model.cascade.gguf"
        self.env = programs.environment(None, XDG_CACHE_HOME=str(tmp / "cache"))

    def command(self, *args: str) -> list[str]:
        return [str(self.p.bin / "cascade"), "tune", "-m", self.f32, "-f", str(self.text), "-c", str(CONTEXT), "--windows", "1",
                "--groups", "2", "--mode", "near", "--kl", str(KL), "--top1", str(TOP1), "-t", "2", "-o", "json",
                "--sidecar", str(self.sidecar), *args]

    def perplexity(self, sidecar: pathlib.Path | None, **more: str) -> tuple[str, dict, list[dict], str]:
        """Digest of a stock program's logits on the quantised model, the plugin's summary and graphs, what was said."""
        stats, logits = self.tmp / "stats", self.tmp / "logits"
        stats.unlink(missing_ok=True)
        if sidecar:
            more["GGML_CASCADE_SIDECAR"] = str(sidecar)
        done = self.p.run("llama-perplexity", "-m", self.p.model, "-f", str(self.text), "-c", "1280", "--chunks", "1", "-t", "2",
                          "-fa", "on", "--kl-divergence-base", str(logits),
                          env=self.p.environment("near", GGML_CASCADE_STATS=str(stats), **more))
        graphs = [line for line in map(json.loads, stats.read_text().splitlines()) if line["type"] == "graph"]
        return hashlib.sha256(logits.read_bytes()).hexdigest(), summaries_of(stats)[-1], graphs, done.stderr


def finds_epsilons_that_keep_the_promise(t: Tune) -> str:
    """Interrupted, and gone on with."""
    child = subprocess.Popen(t.command(), env=t.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 300
    while not list((t.tmp / "cache").rglob("tune-*.jsonl")) and child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=120)
    assert child.returncode == 130 and "--resume" in said, (child.returncode, said[-1000:])
    assert not t.sidecar.exists(), "a sidecar of an unfinished run"
    done = subprocess.run(t.command("--resume"), env=t.env, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-2000:]
    tuning = t.tuning = json.loads(done.stdout)
    assert not list((t.tmp / "cache").rglob("tune-*.jsonl")), "what was kept for resuming is still there"
    (mode,) = tuning["modes"]
    kept = mode[mode["kept"]]
    assert len(kept["epsilons"]) == LAYERS and all(0 < epsilon <= 1 for epsilon in kept["epsilons"]), kept
    assert 1e-5 < kept["kl"] <= kept["kl_high"] <= KL and kept["top1"] >= kept["top1_low"] >= TOP1 / 100, kept
    for found in filter(None, (mode["by_layer"], mode["uniform"])):
        assert found["kl_high"] <= KL and kept["bytes_share"] <= found["bytes_share"], mode
    assert [probe["first"] for probe in tuning["probes"]] == [0, LAYERS // 2], tuning["probes"]
    assert t.sidecar.read_bytes()[:4] == b"GGUF"
    return f"{mode['kept']}: KL {kept['kl']:.4f} up to {kept['kl_high']:.4f}, bytes {kept['bytes_share']:.1%}"


def is_what_eval_measures(t: Tune) -> str:
    """One epsilon for all layers, measured by a run that makes its dense context before it loads the plugin."""
    found = t.tuning["modes"][0]["uniform"]
    done = subprocess.run([str(t.p.bin / "cascade"), "eval", "-m", t.f32, "-f", str(t.text), "-c", str(CONTEXT), "--windows", "1",
                           "--methods", f"near:eps={found['epsilons'][0]}", "--no-noise", "-t", "2", "-o", "json"],
                          env=t.env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    (measured,) = json.loads(done.stdout)["methods"]
    for figure in ("kl", "top1", "bytes_share"):
        assert abs(measured[figure] - found[figure]) <= 0.02 * found[figure], (figure, measured[figure], found[figure])
    return f"KL {measured['kl']:.6f}, {found['kl']:.6f}"


def stock_programs_use_it(t: Tune) -> str:
    """Tuned on F32 weights, used with the same model's quantised ones: its norms are the same."""
    without, plain, graphs, _ = t.perplexity(None)
    assert "sidecar" not in plain and plain["on_covers"]["rows"] > 0, plain
    used, summary, graphs, said = t.perplexity(t.sidecar)
    report = summary["sidecar"]
    assert report["used"] and report["layers_unmatched"] == 0 and report["layers_matched"] > 0, report
    assert "sidecar" not in said, said[-1000:]
    assert used != without, "other epsilons, the same logits"
    epsilons = [site["epsilon"] for site in graphs[-1]["attention"]]
    assert len(epsilons) == LAYERS and summary["failures"] == 0, graphs[-1]
    _, given, graphs, _ = t.perplexity(t.sidecar, GGML_CASCADE_EPS="0")
    assert not given["sidecar"]["used"] and set(given["sites_left"]) <= {"epsilon 0", "short context"}, given
    return f"epsilons {min(epsilons):.4f} to {max(epsilons):.4f}"


def damaged_files_are_refused(t: Tune) -> str:
    without, *_ = t.perplexity(None)
    good = t.sidecar.read_bytes()
    damaged = t.tmp / "damaged.gguf"
    at = len(good) // 2
    for what, content in {"a byte": good[:at] + bytes([good[at] ^ 0x10]) + good[at + 1:], "its end": good[:at],
                          "everything": b"GGUF" + b"\xff" * 4096}.items():
        damaged.write_bytes(content)
        logits, summary, _, said = t.perplexity(damaged)
        assert logits == without, f"{what} changed: logits differ from those without a sidecar"
        assert not summary["sidecar"]["used"] and summary["sidecar"]["refused"], summary["sidecar"]
        assert said.count("GGML_CASCADE_SIDECAR=") == 1 and summary["failures"] == 0, said[-1000:]
    return "three of them"


def another_models_is_refused(t: Tune) -> str:
    others = [file for file in pathlib.Path(t.p.model).parent.glob("*.gguf") if file != pathlib.Path(t.p.model)]
    if not others:
        return "no other model here: not tried"
    other = min(others, key=lambda file: file.stat().st_size)
    stats = t.tmp / "stats"
    stats.unlink(missing_ok=True)
    done = t.p.run("llama-completion", "-m", str(other), "-p", "The river", "-n", "2", "-t", "2", "-no-cnv", "--temp", "0",
                   env=t.p.environment("near", GGML_CASCADE_STATS=str(stats), GGML_CASCADE_SIDECAR=str(t.sidecar)))
    assert done.stderr.count("the sidecar is for another model") == 1, done.stderr[-1000:]
    report = summaries_of(stats)[-1]["sidecar"]
    assert not report["used"] and report["layers_matched"] == 0 and report["layers_unmatched"] > 0, report
    return other.name


PARTS = (finds_epsilons_that_keep_the_promise, is_what_eval_measures, stock_programs_use_it, damaged_files_are_refused,
         another_models_is_refused)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--model", type=pathlib.Path, default=ROOT / ".deps/models/smollm2-135m-instruct-q4_1.gguf")
    parser.add_argument("--f32", type=pathlib.Path, required=True, help="the same model with weights in F32")
    args = parser.parse_args()
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    for model in (args.model, args.f32):
        if not model.exists():
            print(f"skipped: {model.name} is missing")
            return SKIP
    with tempfile.TemporaryDirectory(prefix="tune-") as name:
        t = Tune(Programs(args.bin.resolve(), args.model.resolve()), args.f32.resolve(), pathlib.Path(name))
        return run_checks(PARTS, t)


if __name__ == "__main__":
    sys.exit(main())
