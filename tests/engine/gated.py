#!/usr/bin/env python3
"""Mode gated in the stock programs, on a real model: linear layers through the subspaces that cascade calibrate found.

Usage: gated.py --bin DIR --model FILE [--f32 FILE]
Exit code 0: all hold; 77: the model isn't there (scripts/get-models fetches it).
"""
from __future__ import annotations

import argparse
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/support"), str(ROOT / "tests/engine")]
from checks import run_checks  # noqa: E402
from perplexity import mean_kl  # noqa: E402
from programs import SKIP, Programs  # noqa: E402
from summary import summaries_of  # noqa: E402

K, TOKENS = 64, 512
KINDS = {"attn_q", "ffn_gate"}  # the widest input would take most of the time


class Gated:
    def __init__(self, programs: Programs, tmp: pathlib.Path, f32: pathlib.Path | None) -> None:
        self.p, self.tmp, self.f32 = programs, tmp, f32
        self.text, self.sidecar = tmp / "documents.txt", tmp / "model.cascade.gguf"
        self.text.write_text("\n".join((ROOT / name).read_text() for name in ("docs/method.md", "docs/plugin.md", "HACKING.md")))
        self.calibrate(self.sidecar, "-k", str(K))

    def calibrate(self, sidecar: pathlib.Path, *flags: str) -> str:
        """What it says of its work. Moments stay, so that only the first reads the text."""
        done = subprocess.run([str(self.p.bin / "cascade"), "calibrate", "-m", self.p.model, "-f", str(self.text), "--tokens", str(TOKENS), "-c",
                               str(TOKENS), "-t", "2", "--inputs", ",".join(sorted(KINDS)), "-o", str(sidecar), "--keep", "--resume",
                               "--report", "json", *flags],
                              env=self.p.environment(None, XDG_CACHE_HOME=str(self.tmp / "cache")), capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    def logits(self, mode: str | None, batch: int = 512, **variables: str) -> tuple[str, dict]:
        """A digest of them, and the plugin's summary."""
        stats, file = self.tmp / "stats", self.tmp / "logits"
        stats.unlink(missing_ok=True)
        env = self.p.environment(mode, **{"GGML_CASCADE_STATS": str(stats), "GGML_CASCADE_SIDECAR": str(self.sidecar), **variables})
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


def the_output_needs_fewer_directions(g: Gated) -> str:
    """A basis and a gate for the output: less of it is lost, and the gate knows by how much."""
    lost = {}
    for basis in ("input", "output"):
        report = json.loads(g.calibrate(g.tmp / f"{basis}.cascade.gguf", "-k", str(K), "--basis", basis, "--gate", "output"))
        lost[basis] = [row["output_lost"] for row in report["inputs"]]
        assert all(row["gain"] > 0 for row in report["inputs"]), report["inputs"][0]
    assert all(ours < own * 1.001 for ours, own in zip(lost["output"], lost["input"])), lost
    return f"lost of the output: {sum(lost['input']) / len(lost['input']):.1%} by the input's basis, {sum(lost['output']) / len(lost['output']):.1%} by the output's"


def what_is_too_far_to_skip_takes_rough_copies(g: Gated) -> str:
    sidecar = g.tmp / "rough.cascade.gguf"
    g.calibrate(sidecar, "-k", str(K), "--basis", "output", "--gate", "output", "--rough", "q4_0")
    bare, _ = g.logits(None)
    said = []
    for batch in (512, 64):
        same, summary = g.logits("gated", batch, GGML_CASCADE_WAY="gated", GGML_CASCADE_EPS="0", GGML_CASCADE_SIDECAR=str(sidecar))
        assert same == g.logits(None, batch)[0] and passed(summary) == 0, "a shut gate changed something"
        ours, summary = g.logits("gated", batch, GGML_CASCADE_WAY="gated", GGML_CASCADE_EPS="0.05", GGML_CASCADE_SIDECAR=str(sidecar))
        rough = sum(one["rough"] for one in summary["subspaces"].values()) / sum(one["tokens"] for one in summary["subspaces"].values())
        assert ours != bare and 0 < rough < 1, summary
        said.append(f"{rough:.0%}")
    return " and ".join(said) + " of tokens by rough copies in batches of 512 and 64"


def the_whole_space_is_the_model(g: Gated) -> str:
    """k = d, images in F32, all tokens pass: what is left is rounding, on weights that don't amplify it."""
    if g.f32 is None or not g.f32.exists():
        return "not looked at: no --f32 model"
    own = g.p.model
    try:
        g.p.model = str(g.f32)
        sidecar, base = g.tmp / "whole.cascade.gguf", g.tmp / "base"
        g.calibrate(sidecar, "-k", "576", "--type", "f32")
        flags = ("-m", g.p.model, "-f", str(g.text), "-c", "512", "--chunks", "1", "-t", "2", "-fa", "on", "--kl-divergence-base", str(base))
        g.p.run("llama-perplexity", *flags, env=g.p.environment(None))
        stats = g.tmp / "whole.stats"
        said = g.p.run("llama-perplexity", *flags, "--kl-divergence", env=g.p.environment(
            "gated", GGML_CASCADE_SIDECAR=str(sidecar), GGML_CASCADE_WAY="gated", GGML_CASCADE_EPS="1", GGML_CASCADE_STATS=str(stats)))
        assert passed(summaries_of(stats)[-1]) == 1
        kl = mean_kl(said.stdout + said.stderr)
        assert kl <= 1e-4, kl
        return f"KL {kl:.6f}"
    finally:
        g.p.model = own


CHECKS = [a_shut_gate_changes_no_bit, an_open_gate_lets_all_pass, a_batch_is_split, what_does_not_pay_is_left_alone,
          the_output_needs_fewer_directions, what_is_too_far_to_skip_takes_rough_copies, the_whole_space_is_the_model]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--model", type=pathlib.Path, default=ROOT / ".deps/models/smollm2-135m-instruct-q4_1.gguf")
    parser.add_argument("--f32", type=pathlib.Path, help="the same model in F32")
    args = parser.parse_args()
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    if not args.model.exists():
        print(f"skipped: {args.model.name} is missing; scripts/get-models fetches it")
        return SKIP
    with tempfile.TemporaryDirectory(prefix="gated-") as name:
        g = Gated(Programs(args.bin.resolve(), args.model.resolve()), pathlib.Path(name), args.f32)
        return run_checks(CHECKS, g)


if __name__ == "__main__":
    sys.exit(main())
