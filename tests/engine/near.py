#!/usr/bin/env python3
"""Modes fast, near and balanced in stock llama.cpp programs: what they may change, and what they must leave alone.

Where the engine's own op is to run (epsilon 0, short contexts, -fa off, every injected fault) the logits are the bare
engine's, byte for byte. Elsewhere their distance to the bare engine's is held against each mode's promise, on F32 weights,
since quantised ones amplify rounding (docs/quality.md), and the statistics must show that covers were used.
Usage: near.py --bin DIR --model FILE --f32 FILE [--text FILE] [--context N] [--chunks N]
Exit code 0: all hold; 77: a model isn't there (scripts/get-models fetches it, the test engine.f32_model makes the other).
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
from dataclasses import dataclass, field

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests/support")]
from checks import run_checks  # noqa: E402
from passkeys import text_with_keys  # noqa: E402
from perplexity import mean_kl  # noqa: E402
from programs import SKIP, Programs  # noqa: E402
from summary import contradictions, share, summaries_of  # noqa: E402

LAYERS, HEADS, KV_HEADS, HEAD_SIZE = 30, 9, 3, 64  # SmolLM2 135M
WINDOW, SLACK, FEWEST = 512, 128, 1024  # cover/index/layer_index.h, plan/plan.cpp
PROMISED = {"near": 0.0055, "balanced": 0.03}
EQUAL = 1e-5  # KL of what differs by rounding alone
INDEX_SHARE = 0.35  # of the cache's bytes in f16
MOST_ERROR = 0.05  # of an attention's output, on average
FAULTS = ("read", "rewrite", "scratch", "node")


def cache_bytes(tokens: int) -> int:
    return tokens * LAYERS * KV_HEADS * 2 * HEAD_SIZE * 2


@dataclass
class Near:
    p: Programs
    f32: str
    text: pathlib.Path
    tmp: pathlib.Path
    context: int
    chunks: int
    digests: dict = field(default_factory=dict)

    def perplexity(self, mode: str | None, context: int, *args: str, chunks: int = 1, **variables: str) -> tuple[str, dict]:
        """What llama-perplexity printed, and the plugin's summary."""
        stats = self.tmp / "stats"
        stats.unlink(missing_ok=True)
        env = self.p.environment(mode, GGML_CASCADE_STATS=str(stats), **variables)
        piece = self.tmp / "text"  # the engine wants two contexts at least; tokenizing all of it costs a second
        piece.write_bytes(self.text.read_bytes()[:12 * context * max(2, chunks)])
        done = self.p.run("llama-perplexity", "-f", str(piece), "-c", str(context), "--chunks", str(chunks), "-t", "2", *args, env=env)
        summaries = summaries_of(stats)
        return done.stdout + done.stderr, summaries[-1] if summaries else {}

    def digest(self, mode: str | None, context: int, *args: str, model: str = "", **variables: str) -> tuple[str, dict]:
        """Of the logits; what was computed once is not again."""
        key = (mode, context, args, model, *variables.items())
        if key in self.digests:
            return self.digests[key]
        file = self.tmp / "logits"
        _, summary = self.perplexity(mode, context, "-m", model or self.f32, "--kl-divergence-base", str(file), *args, **variables)
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        assert file.stat().st_size > 1 << 20, "no logits"
        file.unlink()
        self.digests[key] = digest, summary
        return self.digests[key]

    def distance(self, mode: str, *args: str, context: int = 0, chunks: int = 0) -> tuple[float, dict]:
        """Mean KL to the bare engine's -fa on with an f16 cache in ordinary batches, on F32 weights."""
        context, chunks = context or self.context, chunks or self.chunks
        base = self.tmp / f"base-{context}-{chunks}"
        common = ("-m", self.f32, "-fa", "on", "--kl-divergence-base", str(base))
        if not base.exists():
            self.perplexity(None, context, *common, chunks=chunks)
        printed, summary = self.perplexity(mode, context, *common, "--kl-divergence", *args, chunks=chunks)
        return mean_kl(printed), summary

    def complete(self, mode: str | None, prompt: str, *args: str, **variables: str) -> tuple[str, dict]:
        stats, file = self.tmp / "stats", self.tmp / "prompt"
        stats.unlink(missing_ok=True)
        file.write_text(prompt)
        env = self.p.environment(mode, GGML_CASCADE_STATS=str(stats), **variables)
        done = self.p.run("llama-completion", "-m", self.f32, "-f", str(file), "-t", "2", "-no-cnv", "--temp", "0",
                          "--no-display-prompt", "-fa", "on", *args, env=env)
        summaries = summaries_of(stats)
        return done.stdout, summaries[-1] if summaries else {}


def on_covers(summary: dict, context: int, chunks: int = 1) -> str:
    """Holds that covers were used as they should; says how much of the past was read."""
    on = summary["on_covers"]
    assert summary["failures"] == 0 and on["covered"] > 0 and on["opened"] > 0 and on["speakers"] > 0, summary
    assert contradictions(summary, LAYERS, HEADS, context * chunks) == [], (contradictions(summary, LAYERS, HEADS), summary)
    index = summary["index_bytes"] / cache_bytes(context)
    assert index <= INDEX_SHARE, f"index of {index:.0%} of the cache"
    return (f"opened {share(on['opened'], on['covered']):.1%}, bytes {share(on['bytes'], on['dense_bytes']):.1%} of the past, "
            f"index {index:.1%} of the cache")


def untouched(summary: dict, why: str) -> None:
    """Nothing was computed by us, for this reason, and nothing failed."""
    assert summary["graphs"] > 0 and summary["sites_taken"] == 0 and summary["failures"] == 0, summary
    assert set(summary["sites_left"]) - {"short context"} == ({why} - {"short context"}), summary["sites_left"]
    assert summary["on_covers"]["rows"] == 0 and summary["graphs_rewritten"] == 0, summary


LONG = FEWEST + 256  # the shortest context in which covers are used


def epsilon_zero_is_the_engine(t: Near) -> str:
    bare, _ = t.digest(None, LONG, model=t.p.model)  # quantised and repacked, the others in F32, which is faster
    ours, summary = t.digest("near", LONG, model=t.p.model, GGML_CASCADE_EPS="0")
    assert ours == bare, "logits differ"
    untouched(summary, "epsilon 0")
    return "identical"


def short_contexts_are_the_engines(t: Near) -> str:
    context = FEWEST - 256
    bare, _ = t.digest(None, context)
    for mode in PROMISED:
        ours, summary = t.digest(mode, context)
        assert ours == bare, f"logits differ in {mode}"
        untouched(summary, "short context")
    return f"identical at {context}"


def without_flash_attention_sites_are_left(t: Near) -> str:
    bare, _ = t.digest(None, LONG, "-fa", "off")
    ours, summary = t.digest("near", LONG, "-fa", "off")
    assert ours == bare, "logits differ"
    untouched(summary, "values are stored transposed: run with flash attention on")
    return "identical"


def every_fault_leaves_the_engines_logits(t: Near) -> str:
    bare, _ = t.digest(None, LONG, "-fa", "on")
    used, summary = t.digest("near", LONG, "-fa", "on")
    assert used != bare and summary["failures"] == 0 and summary["on_covers"]["rows"] > 0, "no covers here: nothing to fail"
    said = []
    for fault in FAULTS:
        ours, summary = t.digest("near", LONG, "-fa", "on", GGML_CASCADE_FAULT=fault)
        assert ours == bare, f"logits differ with fault {fault}"
        assert summary["failures"] > 0 and summary["on_covers"]["rows"] == 0, (fault, summary)
        whole_graphs = fault in ("read", "rewrite")
        assert summary["failures"] == (summary["graphs"] if whole_graphs else summary["sites_taken"]), (fault, summary)
        said.append(f"{fault} {summary['failures']}")
    return "identical; failures: " + ", ".join(said)


def fast_differs_by_rounding(t: Near) -> str:
    kl, summary = t.distance("fast")
    assert kl < EQUAL, kl
    assert summary["failures"] == 0 and summary["sites_left"] == {} and summary["on_covers"]["rows"] == 0, summary
    return f"KL {kl:.6f}"


def modes_keep_their_promise(t: Near) -> str:
    said = []
    for mode, promised in PROMISED.items():
        kl, summary = t.distance(mode)
        assert EQUAL < kl <= promised, (mode, kl)
        said.append(f"{mode}: KL {kl:.4f}, " + on_covers(summary, t.context, t.chunks))
    return "; ".join(said)


def decoding_keeps_the_promise(t: Near) -> str:
    """Four rows of a sequence at a time take the way of generating text: 12 rows of a KV head."""
    context = FEWEST + 512
    kl, summary = t.distance("near", "-ub", "4", context=context, chunks=1)
    assert EQUAL < kl <= PROMISED["near"], kl
    # from when there is more than window and slack in a graph of the plan's length on, every token is computed on a cover
    expected = context - FEWEST + 256
    rows = summary["on_covers"]["rows"] / (LAYERS * HEADS)
    assert abs(rows - expected) <= 8, (rows, expected)
    return f"KL {kl:.4f}, " + on_covers(summary, context)


def quantised_cache_is_covered(t: Near) -> str:
    """The distance is to an f16 cache: Q8_0's own error is a part of it."""
    kl, summary = t.distance("near", "-ctk", "q8_0", "-ctv", "q8_0", context=FEWEST + 512, chunks=1)
    assert EQUAL < kl <= 1.2 * PROMISED["near"], kl
    return f"KL {kl:.4f}, " + on_covers(summary, FEWEST + 512)


def pass_keys_are_found(t: Near) -> str:
    """What the bare engine finds early in a long prompt, near and balanced find too; then text goes on over the cover."""
    text, facts = text_with_keys(seed=5, tokens=2700, depths=[0.1])
    fact = facts[0]
    answers = {}
    for mode in (None, *PROMISED):
        answers[mode], summary = t.complete(mode, text + fact.question, "-c", "4096", "-n", "24", "--ignore-eos")
        assert fact.is_answered_by(answers[mode]), (mode, fact, answers[mode])
        if mode:
            said = on_covers(summary, 3072)
    agree = {m: len(os.path.commonprefix([answers[None], answers[m]])) for m in PROMISED}
    return f"found; text agrees for {agree} of {len(answers[None])} characters; {said}"


def context_shift_goes_on(t: Near) -> str:
    """The keys are rotated in place. That what was known of them is forgotten is held by the tests of the index."""
    text, _ = text_with_keys(seed=7, tokens=1330, depths=[0.5])
    context, generated = FEWEST + 512, 400
    args = ("-c", str(context), "-n", str(generated), "--context-shift", "--keep", "64", "--ignore-eos")
    ours, summary = t.complete("near", text, *args, GGML_CASCADE_AUDIT="1/8")
    assert len(ours) > 2 * generated, ours  # characters
    assert summary["failures"] == 0 and summary["on_covers"]["rows"] > 0, summary
    assert contradictions(summary, LAYERS, HEADS, context + generated) == [], summary
    # the prompt's graphs, one for each token, and those that shift
    assert summary["graphs"] > generated, summary
    audit = summary["audit"]  # of all rows, most of them before the shift: shows what is broken, not what is a little stale
    assert audit["rows"] > 0 and audit["above_bound"] == 0 and audit["error"] <= MOST_ERROR, audit
    return f"{summary['graphs']} graphs, {summary['uncovered']} uncovered, error {audit['error']:.4f}, " + on_covers(summary, context, 2)


def costs_are_measured_and_kept(t: Near) -> str:
    """Left to itself the plan measures what attention costs here, and keeps that in a file; again until it is settled."""
    file, kept, said = t.tmp / "costs.json", [], []
    for _ in range(2):
        _, summary = t.perplexity("near", LONG, "-m", t.f32, "-fa", "on", GGML_CASCADE_WAY="", GGML_CASCADE_COSTS=str(file))
        assert summary["failures"] == 0 and summary["graphs"] > 0, summary
        if not file.exists():
            return "nothing could be measured: the machine is too busy"
        costs = json.loads(file.read_text())
        said.append(f"{summary['seconds_reading']:.3f} s")
        assert list(costs["seconds"]) == ["9/3 heads of 64/64, f16/f16, 2 threads"], costs
        assert not kept or file.read_text() == kept[-1], "measured again"
        for table in costs["seconds"].values():
            assert table["measured"] in (1, 4), table
            table["measured"] = 4
        kept.append(json.dumps(costs))
        file.write_text(kept[-1])
    return "reading graphs took " + " and ".join(said)


def auditing_changes_nothing(t: Near) -> str:
    without, _ = t.digest("near", LONG, "-fa", "on")
    ours, summary = t.digest("near", LONG, "-fa", "on", GGML_CASCADE_AUDIT="1/16")
    assert ours == without, "logits differ"
    audit = summary["audit"]
    assert audit["rows"] > 0 and audit["above_bound"] == 0 and summary["failures"] == 0, audit
    assert 0 < audit["error"] <= audit["bound"] and audit["worst_of_bound"] <= 1, audit
    return f"identical; error {audit['error']:.4f}, estimate {audit['estimate']:.4f}, bound {audit['bound']:.4f}"


CHECKS = [epsilon_zero_is_the_engine, short_contexts_are_the_engines, without_flash_attention_sites_are_left,
          every_fault_leaves_the_engines_logits, fast_differs_by_rounding, modes_keep_their_promise, decoding_keeps_the_promise,
          quantised_cache_is_covered, pass_keys_are_found, context_shift_goes_on, auditing_changes_nothing, costs_are_measured_and_kept]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--model", type=pathlib.Path, default=ROOT / ".deps/models/smollm2-135m-instruct-q4_1.gguf")
    parser.add_argument("--f32", type=pathlib.Path, required=True, help="the same model with weights in F32")
    parser.add_argument("--text", type=pathlib.Path, help="to score (default: wiki.test.raw where it is there, else docs/*.md)")
    parser.add_argument("--context", type=int, default=2048, help="of the promises' check (default: %(default)s)")
    parser.add_argument("--chunks", type=int, default=1)
    parser.add_argument("--only", default="", help="run the checks whose name contains this")
    return parser.parse_args()


def the_text(given: pathlib.Path | None, tmp: pathlib.Path) -> pathlib.Path:
    standard = ROOT.parent / "shared/data/wiki.test.raw"
    if given or standard.is_file():
        return given or standard
    ours = tmp / "docs"
    ours.write_bytes(b"\n".join(file.read_bytes() for file in sorted((ROOT / "docs").glob("*.md"))))
    return ours


def main() -> int:
    args = parse_arguments()
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # waiting threads sleep: on a busy machine far faster, else alike
    for model, remedy in ((args.model, "scripts/get-models fetches it"), (args.f32, "the test engine.f32_model makes it")):
        if not model.exists():
            print(f"skipped: {model.name} is missing; {remedy}")
            return SKIP
    p = Programs(args.bin.resolve(), args.model.resolve())
    p.timeout = 900
    with tempfile.TemporaryDirectory(prefix="near-") as name:
        tmp = pathlib.Path(name)
        t = Near(p, str(args.f32.resolve()), the_text(args.text, tmp), tmp, args.context, args.chunks)
        return run_checks(CHECKS, t, args.only)


if __name__ == "__main__":
    sys.exit(main())
