#!/usr/bin/env python3
"""cascade eval on a real model: beside llama-perplexity on the same tokens, exact is exact, budgets hold, a run that was
interrupted gives the same numbers.

Usage: eval.py --bin DIR --model FILE [--only PART]
Exit code 0: all hold; 77: the model isn't there (scripts/get-models fetches it).
"""
import argparse
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

SKIP = 77
ROOT = pathlib.Path(__file__).resolve().parents[2]
FIELDS = ("name", "kl", "kl_interval", "kl_median", "kl_99", "kl_999", "top1", "ppl_ratio", "share", "bytes_share",
          "layer_error", "retrieval")
VARYING = ("seconds", "cost")


class Eval:
    def __init__(self, bin_dir, model, tmp):
        self.bin, self.model, self.tmp = bin_dir, str(model), tmp
        self.text = tmp / "documents.txt"
        self.text.write_text("\n".join((ROOT / name).read_text() for name in
                                       ("docs/method.md", "docs/plugin.md", "README.md", "HACKING.md")))
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("GGML_", "LLAMA_", "CASCADE_"))}
        self.env |= {"XDG_CACHE_HOME": str(tmp / "cache"), "OMP_WAIT_POLICY": "passive"}

    def command(self, *args):
        return [str(self.bin / "cascade"), "eval", "-m", self.model, "-f", str(self.text), "-t", "2", *args]

    def run(self, *args, code=0):
        done = subprocess.run(self.command(*args), env=self.env, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=600)
        assert done.returncode == code, f"exit code {done.returncode}, not {code}:\n{done.stderr[-2000:]}"
        return done

    def json(self, *args):
        return json.loads(self.run(*args, "-o", "json").stdout)

    def perplexity(self, *args):
        done = subprocess.run([str(self.bin / "llama-perplexity"), "-m", self.model, "-f", str(self.text), "-t", "2",
                               "-c", "512", "-b", "512", "--chunks", "2", "-fa", "on", *args], env=self.env,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout + done.stderr

    def kept(self):
        return list((self.tmp / "cache").rglob("eval-*.jsonl"))


def methods(evaluation):
    return {method["name"]: method for method in evaluation["methods"]}


def beside_llama_perplexity(program):
    base = program.tmp / "base.dat"
    printed = program.perplexity("--kl-divergence-base", str(base))
    theirs = float(re.search(r"Final estimate: PPL = ([\d.]+)", printed).group(1))
    flags = ("-c", "512", "--windows", "2", "--no-noise", "--methods", "exact")
    ours = program.json(*flags)
    assert abs(ours["dense"]["ppl"] / theirs - 1) < 5e-5, f"perplexity {ours['dense']['ppl']}, llama-perplexity {theirs}"
    exact = methods(ours)["exact"]
    assert exact["kl"] == 0 and exact["kl_999"] == 0 and exact["top1"] == 1 and exact["ppl_ratio"] == 1, exact

    printed = program.perplexity("--kl-divergence-base", str(base), "--kl-divergence", "-ctk", "q8_0", "-ctv", "q8_0")
    theirs = float(re.search(r"Mean\s+KLD:\s+([\d.]+)", printed).group(1))
    rounded = methods(program.json(*flags, "-ctk", "q8_0", "-ctv", "q8_0"))["exact"]
    low, high = rounded["kl_interval"]
    assert low <= theirs <= high, f"KL of a q8_0 cache {rounded['kl']} in [{low}, {high}], llama-perplexity {theirs}"


def budgets_hold(program):
    names = ["joint", "refine", "proportional", "streaming", "snapkv", "blocks", "quest", "sampled", "random", "oracle"]
    evaluation = program.json("-c", "768", "--windows", "1", "--block", "128", "--window", "64", "--f32", "--budgets",
                              "0.2", "--methods", ",".join(names))
    for name, method in methods(evaluation).items():
        assert all(field in method for field in FIELDS), (name, method.keys())
        assert abs(method["share"] / 0.2 - 1) < 0.02, f"{name} reads {method['share']}"
        assert method["layers_left_alone"] == 0 and 0 < method["kl"] < 3, (name, method)
    assert evaluation["dense"]["ppl"] > 1 and len(evaluation["methods"]) == len(names)


def goes_on_where_it_stopped(program):
    flags = ("-c", "256", "--windows", "3", "--block", "64", "--window", "32", "--f32", "--methods",
             "joint:0.2,random:0.3", "--retrieval", "--tasks", "passkey", "--lengths", "512", "--questions", "2")
    whole = program.json(*flags)
    assert not program.kept(), "a finished run leaves nothing behind"
    child = subprocess.Popen(program.command(*flags, "-o", "json"), env=program.env, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 300
    while not program.kept() and child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=120)
    assert child.returncode == 130 and "--resume" in err, (child.returncode, err[-1000:])
    assert json.loads(out)["complete"] is False
    resumed = program.json(*flags, "--resume")
    for evaluation in (whole, resumed):
        for part in (*evaluation["methods"], evaluation["dense"]):
            for field in VARYING:
                part.pop(field, None)
    assert whole["methods"] == resumed["methods"] and whole["dense"] == resumed["dense"], "other numbers after resuming"
    assert whole["methods"][0]["retrieval"] is None or 0 <= whole["methods"][0]["retrieval"] <= 1


def speaks_plainly(program):
    for args, words in ((("--methods", "jonit"), ("--methods", "joint")),
                        (("--methods", "joint:2"), ("--methods", "0 to 1")),
                        (("--methods", "streaming:bits=3"), ("bits", "sinks")),
                        (("-c", "100000"), ("-c", "8192"))):
        done = subprocess.run(program.command(*args), env=program.env, capture_output=True, text=True, timeout=60)
        assert done.returncode in (1, 2) and all(word in done.stderr for word in words), (args, done.stderr)
    table = program.run("-c", "256", "--windows", "1", "--block", "64", "--window", "32", "--methods",
                        "exact,streaming:0.2").stdout
    assert "exact" in table and "streaming:0.2" in table and "fa-off" in table, table


PARTS = (beside_llama_perplexity, budgets_hold, goes_on_where_it_stopped, speaks_plainly)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--only")
    options = parser.parse_args()
    if not options.model.exists():
        print(f"skipped: no {options.model}; scripts/get-models fetches it")
        return SKIP
    with tempfile.TemporaryDirectory() as tmp:
        program = Eval(options.bin, options.model, pathlib.Path(tmp))
        for part in PARTS:
            if options.only in (None, part.__name__):
                start = time.monotonic()
                part(program)
                print(f"{part.__name__}: holds ({time.monotonic() - start:.0f} s)", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
