#!/usr/bin/env python3
"""Mode gated in the stock programs, on a real model: linear layers through the subspaces that cascade calibrate found.

Usage: gated.py --bin DIR --model FILE
Exit code 0: all hold; 77: the model isn't there (scripts/get-models fetches it).
"""
from __future__ import annotations

import argparse
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/support"), str(ROOT / "tests/engine")]
from checks import run_checks  # noqa: E402
from programs import SKIP, Programs  # noqa: E402
from summary import summaries_of  # noqa: E402

K, TOKENS = 64, 512
KINDS = {"attn_q", "ffn_gate"}  # the widest input would take most of the time


class Gated:
    def __init__(self, programs: Programs, tmp: pathlib.Path) -> None:
        self.p, self.tmp = programs, tmp
        self.text, self.sidecar = tmp / "documents.txt", tmp / "model.cascade.gguf"
        self.text.write_text("\n".join((ROOT / name).read_text() for name in ("docs/method.md", "docs/plugin.md", "HACKING.md")))
        subprocess.run([str(programs.bin / "cascade"), "calibrate", "-m", programs.model, "-f", str(self.text), "-k", str(K), "--tokens",
                        str(TOKENS), "-c", str(TOKENS), "-t", "2", "--inputs", ",".join(sorted(KINDS)), "-o", str(self.sidecar)],
                       env=programs.environment(None, XDG_CACHE_HOME=str(tmp / "cache")), check=True, capture_output=True, timeout=900)

    def logits(self, mode: str | None, batch: int = 512, **variables: str) -> tuple[str, dict]:
        """A digest of them, and the plugin's summary."""
        stats, file = self.tmp / "stats", self.tmp / "logits"
        stats.unlink(missing_ok=True)
        env = self.p.environment(mode, GGML_CASCADE_STATS=str(stats), GGML_CASCADE_SIDECAR=str(self.sidecar), **variables)
        self.p.run("llama-perplexity", "-m", self.p.model, "-f", str(self.text), "-c", "512", "--chunks", "1", "-t", "2", "-fa", "on",
                   "-ub", str(batch), "--kl-divergence-base", str(file), env=env)
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        assert file.stat().st_size > 1 << 20, "no logits"
        file.unlink()
        summaries = summaries_of(stats)
        return digest, summaries[-1] if summaries else {}


def passed(summary: dict) -> float:
    inputs = summary["subspaces"]
    assert set(inputs) == KINDS and summary["failures"] == 0, summary
    assert all(one["tokens"] > 0 and one["passed"] <= one["tokens"] for one in inputs.values()), inputs
    return sum(one["passed"] for one in inputs.values()) / sum(one["tokens"] for one in inputs.values())


def a_shut_gate_changes_no_bit(g: Gated) -> str:
    for batch in (512, 64):
        bare, _ = g.logits(None, batch)
        ours, summary = g.logits("gated", batch, GGML_CASCADE_WAY="gated", GGML_CASCADE_EPS="0")
        assert ours == bare, f"logits differ in batches of {batch}"
        assert passed(summary) == 0, summary
    return "identical in batches of 512 and 64"


def an_open_gate_lets_all_pass(g: Gated) -> str:
    bare, _ = g.logits(None)
    ours, summary = g.logits("gated", GGML_CASCADE_WAY="gated", GGML_CASCADE_EPS="1")
    assert ours != bare and passed(summary) == 1, summary
    read = sum(one["bytes"] for one in summary["subspaces"].values()) / sum(one["weight_bytes"] for one in summary["subspaces"].values())
    return f"all passed; {read:.0%} of the weights' bytes read"


def a_batch_is_split(g: Gated) -> str:
    _, summary = g.logits("gated", GGML_CASCADE_WAY="gated", GGML_CASCADE_EPS="0.6")
    share = passed(summary)
    assert 0 < share < 1, summary
    return f"{share:.0%} passed"


def what_does_not_pay_is_left_alone(g: Gated) -> str:
    bare, _ = g.logits(None)
    ours, summary = g.logits("gated")
    assert ours == bare and "subspaces" not in summary and summary["failures"] == 0, summary
    return "identical: nothing pays on this model"


CHECKS = [a_shut_gate_changes_no_bit, an_open_gate_lets_all_pass, a_batch_is_split, what_does_not_pay_is_left_alone]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--model", type=pathlib.Path, default=ROOT / ".deps/models/smollm2-135m-instruct-q4_1.gguf")
    args = parser.parse_args()
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    if not args.model.exists():
        print(f"skipped: {args.model.name} is missing; scripts/get-models fetches it")
        return SKIP
    with tempfile.TemporaryDirectory(prefix="gated-") as name:
        g = Gated(Programs(args.bin.resolve(), args.model.resolve()), pathlib.Path(name))
        return run_checks(CHECKS, g)


if __name__ == "__main__":
    sys.exit(main())
