#!/usr/bin/env python3
"""Mode gated where its premise holds: a model made so that inputs of linear maps lie in k directions, up to a known noise
(tests/engine/subspace_model.cpp). Gate rates, bytes and logits come out as the mathematics says, and text is generated faster.

Usage: synthetic_subspace.py --bin DIR [--speed]
--speed measures at width 4096, k 256 instead, and takes some minutes: 600 MB of temporary files, the machine for itself.
Exit code 0: all hold; 77: a program isn't there.
"""
from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/support"), str(ROOT / "tests/engine")]
from checks import run_checks  # noqa: E402
from perplexity import mean_kl  # noqa: E402
from programs import SKIP, Programs  # noqa: E402
from summary import summaries_of  # noqa: E402

CONTEXT = 512
OUTPUTS = slice(CONTEXT // 2, CONTEXT)  # tokens whose logits llama-perplexity wants
FIRST_CHARACTER, VOCABULARY = 259, 1024
NOISY_EVERY = 4


@dataclasses.dataclass
class Shape:
    width: int
    k: int
    layers: int = 2

    def inputs(self) -> dict[str, tuple[int, list[int]]]:
        """Each input's width, and its maps' outputs."""
        d, inner = self.width, 43 * self.width // (16 * self.k) * self.k
        return {"attn_q": (d, [d, d, d]), "attn_output": (d, [d]), "ffn_gate": (d, [inner, inner]), "ffn_down": (inner, [d])}


def q8_bytes(values: int) -> int:
    return values // 32 * 34


class Synthetic:
    def __init__(self, bin_dir: pathlib.Path, tmp: pathlib.Path, shape: Shape, noisy_every: int = NOISY_EVERY) -> None:
        self.tmp, self.shape = tmp, shape
        self.p = Programs(bin_dir, tmp / "model.gguf")
        self.sidecar, self.text, self.base = tmp / "model.cascade.gguf", tmp / "text", tmp / "base"
        numbers = random.Random(1)
        self.tokens = [numbers.randrange(FIRST_CHARACTER, VOCABULARY) for _ in range(2 * CONTEXT)]
        self.text.write_text("".join(chr(0x4E00 + token) for token in self.tokens))
        subprocess.run([str(bin_dir / "subspace_model"), "--width", str(shape.width), "-k", str(shape.k), "--layers", str(shape.layers),
                        "--noisy-every", str(noisy_every), "-o", str(tmp)], env=self.p.environment(None), check=True, timeout=300)

    def perplexity(self, mode: str | None, base: pathlib.Path, *args: str, **variables: str) -> tuple[str, dict]:
        stats = self.tmp / "stats"
        stats.unlink(missing_ok=True)
        env = self.p.environment(mode, GGML_CASCADE_STATS=str(stats), GGML_CASCADE_SIDECAR=str(self.sidecar), **variables)
        done = self.p.run("llama-perplexity", "-m", self.p.model, "-f", str(self.text), "-c", str(CONTEXT), "--chunks", "1", "-t", "2",
                          "-fa", "on", "--no-warmup", "--kl-divergence-base", str(base), *args, env=env)
        summaries = summaries_of(stats)
        return done.stdout + done.stderr, summaries[-1] if summaries else {}

    def distance(self, epsilon: float, *args: str) -> tuple[float, dict]:
        """Mean KL to the bare engine, and the plugin's summary."""
        if not self.base.exists():
            self.perplexity(None, self.base)
        printed, summary = self.perplexity("gated", self.base, "--kl-divergence", *args, GGML_CASCADE_EPS=str(epsilon))
        return mean_kl(printed), summary

    def digest(self, mode: str | None, **variables: str) -> str:
        file = self.tmp / "logits"
        self.perplexity(mode, file, **variables)
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        file.unlink()
        return digest

    def expected(self, all_pass: bool = False) -> dict[str, dict]:
        """What the statistics must say. Attention reads all tokens in each layer; behind it the last layer has the wanted ones only."""
        def near(tokens: list[int]) -> int:
            return sum(all_pass or token % NOISY_EVERY != NOISY_EVERY - 1 for token in tokens)

        read, wanted = self.tokens[:CONTEXT], self.tokens[OUTPUTS]
        counts = {}
        for name, (width, outputs) in self.shape.inputs().items():
            layers = [read] * self.shape.layers if name.startswith("attn") else [read] * (self.shape.layers - 1) + [wanted]
            tokens = sum(len(layer) for layer in layers)
            passed = tokens if name in ("attn_output", "ffn_down") else sum(near(layer) for layer in layers)
            weights = sum(outputs) * q8_bytes(width)
            basis, images = 2 * width * self.shape.k, sum(outputs) * q8_bytes(self.shape.k)
            counts[name] = {"tokens": tokens, "passed": passed, "rough": 0, "weight_bytes": tokens * weights,
                            "bytes": tokens * basis + passed * images + (tokens - passed) * weights}
        return counts

    def bench(self, mode: str, *args: str) -> list[dict]:
        env = self.p.environment(None, GGML_CASCADE_SIDECAR=str(self.sidecar), XDG_CACHE_HOME=str(self.tmp))
        done = subprocess.run([str(self.p.bin / "cascade"), "bench", "-m", self.p.model, "--mode", mode, "-t", "2", "-fa", "on", *args,
                               "-o", "json"], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=1200)
        assert done.returncode == 0, done.stderr[-2000:]
        return json.loads(done.stdout)["tests"]


def a_token_passes_where_it_lies_in_the_subspace(s: Synthetic) -> str:
    """The plan takes all inputs by itself, and every count and byte is the one that was computed beforehand."""
    distances = []
    for batch in (CONTEXT, 1):
        kl, summary = s.distance(0.05, "-ub", str(batch))
        assert summary["failures"] == 0 and summary["subspaces"] == s.expected(), (batch, summary["subspaces"], s.expected())
        assert kl < 1e-3, f"KL {kl} in batches of {batch}"
        distances.append(kl)
    counts = s.expected()
    rates = ", ".join(f"{name} {one['passed']} of {one['tokens']}" for name, one in counts.items())
    read = sum(one["bytes"] for one in counts.values()) / sum(one["weight_bytes"] for one in counts.values())
    return f"{rates}; {read:.1%} of the weights' bytes; KL {distances[0]:.6f}, token by token {distances[1]:.6f}"


def what_lies_outside_counts(s: Synthetic) -> str:
    """An open gate lets the noisy tokens pass as well, and logits suffer: the weights do read what lies outside."""
    gated, _ = s.distance(0.05)
    opened, summary = s.distance(0.5)
    assert summary["subspaces"] == s.expected(all_pass=True), summary["subspaces"]
    assert opened > 10 * max(gated, 0.0), (opened, gated)
    return f"KL {opened:.6f} where all pass"


def a_shut_gate_changes_no_bit(s: Synthetic) -> str:
    assert s.digest("gated", GGML_CASCADE_WAY="gated", GGML_CASCADE_EPS="0") == s.digest(None), "logits differ"
    return "identical"


def text_is_generated_faster(s: Synthetic) -> str:
    test = s.bench("gated", "-p", "0", "-n", "16", "-r", "6")[0]
    assert test["ratio"] > 1.2, test
    return f"{test['ratio']:.2f} times as fast"


CHECKS = [a_token_passes_where_it_lies_in_the_subspace, what_lies_outside_counts, a_shut_gate_changes_no_bit, text_is_generated_faster]


def speed(bin_dir: pathlib.Path, shape: Shape, least: float) -> int:
    """Bare and gated turn by turn, tokens at random: with none far from the subspace, and with one in four."""
    failed = False
    for noisy_every in (0, NOISY_EVERY):
        with tempfile.TemporaryDirectory(prefix="subspace-") as name:
            s = Synthetic(bin_dir, pathlib.Path(name), shape, noisy_every)
            far = "none" if noisy_every == 0 else f"1 in {noisy_every}"
            for test in s.bench("gated", "-p", "512", "-n", "32", "-r", "8"):
                low, high = test["ratio_interval"]
                print(f"width {shape.width}, k {shape.k}, {far} far, {test['test']}: {test['bare_ts']:.2f} -> {test['ours_ts']:.2f} "
                      f"tokens/s, ratio {test['ratio']:.2f} ({low:.2f} .. {high:.2f}), control {test['control_ratio']:.3f}", flush=True)
                failed |= noisy_every == 0 and test["n_gen"] > 0 and test["ratio"] < least
    return 1 if failed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--speed", action="store_true", help="measure at width 4096, k 256")
    parser.add_argument("--least", type=float, default=2.5, help="the ratio that --speed wants of generated text (default: 2.5)")
    args = parser.parse_args()
    for program in ("subspace_model", "cascade", "llama-perplexity"):
        if not (args.bin / program).exists():
            print(f"skipped: {program} is not in {args.bin}; build it there")
            return SKIP
    bin_dir = args.bin.resolve()
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    if args.speed:
        return speed(bin_dir, Shape(4096, 256), args.least)
    with tempfile.TemporaryDirectory(prefix="subspace-") as name:
        return run_checks(CHECKS, Synthetic(bin_dir, pathlib.Path(name), Shape(2048, 128)))


if __name__ == "__main__":
    sys.exit(main())
