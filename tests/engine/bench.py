#!/usr/bin/env python3
"""cascade bench on a real model, in settings too short for good figures: forms, fields and messages.

Usage: bench.py --bin DIR --model FILE [--only PART]
Exit code 0: all hold; 77: the model isn't there (scripts/get-models fetches it).
"""
import argparse
import csv
import io
import json
import os
import pathlib
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

SKIP = 77
TINY = ("-p", "16", "-n", "2", "-r", "2", "-fa", "on")
PROMPT = ("-p", "16", "-n", "0", "-r", "2", "-fa", "on")
EXTRA = ["mode", "ratio", "ratio_low", "ratio_high"]


class Bench:
    def __init__(self, bin_dir: pathlib.Path, model: pathlib.Path, tmp: pathlib.Path) -> None:
        self.bin = bin_dir
        self.model = str(model)
        self.tmp = tmp
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("GGML_", "LLAMA_", "CASCADE_"))}
        self.env |= {"OMP_WAIT_POLICY": "passive", "TMPDIR": str(tmp)}

    def command(self, *args: str) -> list[str]:
        return [str(self.bin / "cascade"), "bench", "-m", self.model, "-t", "2", *args]

    def run(self, *args: str, code: int = 0, **env: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(self.command(*args), env=self.env | env, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=300)
        assert done.returncode == code, f"exit code {done.returncode}, not {code}:\n{done.stderr[-2000:]}"
        return done


def llama_bench_row(b: Bench) -> dict:
    done = subprocess.run([str(b.bin / "llama-bench"), "-m", b.model, "-t", "2", "-p", "4", "-n", "0", "-r", "1", "-o",
                           "jsonl"], env=b.env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def json_has_the_figures_and_llama_benchs_fields(b: Bench) -> None:
    done = b.run("-p", "16", "-n", "3", "-pg", "8,2", "-d", "0,20", "-ub", "8", "-r", "2", "-o", "json")
    result = json.loads(done.stdout)
    assert result["kind"] == "cascade-bench" and result["complete"] is True and result["mode"] == "exact"
    tests = result["tests"]
    assert [t["test"] for t in tests] == ["pp16", "tg3", "pp8+tg2", "pp16 @ d20", "tg3 @ d20", "pp8+tg2 @ d20"]
    theirs = llama_bench_row(b)
    for test in tests:
        assert set(theirs) <= set(test) and set(theirs) <= set(test["bare"]), set(theirs) - set(test)
        for field, value in theirs.items():
            assert type(test[field]) is type(value), (field, value, test[field])
        low, high = test["ratio_interval"]
        assert low <= test["ratio"] <= high and test["bare_ts"] > 0 and test["ours_ts"] > 0, test
        assert test["control_interval"][0] <= test["control_ratio"] <= test["control_interval"][1], test
        assert test["interval_level"] == 0.5 and test["rounds"] == 2 == len(test["samples_ns"]), test
        assert test["backends"] == "Cascade" and test["bare"]["backends"] == theirs["backends"] == "CPU", test
        assert {test["flash_attn"], test["slower_setting"]["flash_attn"]} == {0, 1}, test
        assert test["microseconds_per_token"] == {}, "mode exact counts nothing"
    for field in ("build_commit", "build_number", "cpu_info", "model_type", "model_size", "model_n_params", "load_mode"):
        assert tests[0]["bare"][field] == theirs[field], (field, tests[0]["bare"][field], theirs[field])
    prompt, token, _, _, deep, _ = tests
    assert token["weight_bytes_per_token"] > 0.9 * theirs["model_size"], token
    assert abs(token["weight_bytes_per_token"] / prompt["weight_bytes_per_token"] - 8) < 1e-6, "once for each 8 tokens"
    row = 30 * 3 * 64 * 2 * 2  # layers, heads, size, keys and values, bytes of f16
    assert 1 <= token["kv_bytes_per_token"] / (2 * row) < 1.05, "of 1, 2 and 3 tokens"
    assert 1 <= deep["kv_bytes_per_token"] / (22 * row) < 1.01, deep["kv_bytes_per_token"]
    assert not list(b.tmp.iterdir()), "a temporary file is left"


def rows_are_llama_benchs_and_ours(b: Bench) -> None:
    theirs = llama_bench_row(b)
    columns = [name for name in theirs if not name.startswith("samples")] + EXTRA
    out = b.tmp / "out.csv"
    assert b.run(*TINY, "-o", "csv", "--out", str(out)).stdout == ""
    rows = list(csv.DictReader(io.StringIO(out.read_text())))
    assert list(rows[0]) == columns and len(rows) == 4, list(rows[0])
    assert [row["backends"] for row in rows] == ["CPU", "Cascade"] * 2 and rows[0]["ratio"] == "", rows
    assert float(rows[1]["ratio_low"]) <= float(rows[1]["ratio"]) <= float(rows[1]["ratio_high"])
    lines = [json.loads(line) for line in b.run(*TINY, "-o", "jsonl").stdout.splitlines()]
    assert len(lines) == 4 and all(set(theirs) | set(EXTRA) == set(line) for line in lines), lines[0]
    base = sqlite3.connect(":memory:")
    base.executescript(b.run(*PROMPT, "--mode", "off", "-o", "sql").stdout)
    assert [info[1] for info in base.execute("PRAGMA table_info(llama_bench)")] == columns
    answer = base.execute("SELECT n_prompt, typeof(avg_ts), mode, typeof(ratio) FROM llama_bench ORDER BY mode").fetchall()
    assert sorted(set(answer)) == [(16, "real", "bare", "null"), (16, "real", "off", "real")], answer


def reference_tells_its_parts(b: Bench) -> None:
    test = json.loads(b.run("--mode", "reference", "-p", "0", "-n", "8", "-d", "100", "-r", "2", "-fa", "on", "-o", "json",
                            "-f", str(pathlib.Path(__file__).resolve().parents[2] / "README.md")).stdout)["tests"][0]
    parts = test["microseconds_per_token"]
    assert {"reading", "ours", "engine"} <= set(parts) and all(value >= 0 for value in parts.values()), parts
    whole = sum(ns for ns in test["samples_ns"]) / 1e3 / 16
    assert parts["ours"] > 0 and 0.5 * whole < sum(parts.values()) <= whole, (parts, whole)
    assert test["failures"] == 0 and not list(b.tmp.iterdir()), test
    table = b.run(*PROMPT, "--mode", "reference").stdout
    assert "| pp16 " in table and "Cascade reference" in table and "| engine " in table and "50 % interval" in table, table


def messages_name_the_remedy(b: Bench) -> None:
    usage, runtime = 2, 1
    for code, args, words in (
            (usage, ("--mode", "magic"), "reference"),
            (usage, ("-fa", "maybe"), "both"),
            (usage, ("-ctk", "q9"), "q8_0"),
            (usage, ("-ctv", "q8_0", "-fa", "off"), "give -fa on"),
            (usage, ("-pg", "12"), "512,128"),
            (usage, ("-r", "0"), "--repetitions"),
            (runtime, ("-p", "0", "-n", "0"), "-p, -n or -pg"),
            (runtime, ("-d", "90000", "-f", __file__), "a longer one with -f"),
            (runtime, ("--out", str(b.tmp / "no" / "folder")), "--out")):
        done = b.run(*args, code=code)
        assert words in done.stderr and done.stdout == "", (args, done.stderr)
    assert "give the path" in b.run(*TINY, code=runtime, GGML_CASCADE_PLUGIN="/nowhere.so").stderr
    assert "did not load" in b.run(*TINY, code=runtime, GGML_CASCADE_PLUGIN=__file__).stderr
    plugin = str(b.bin / "libggml-cascade.so")  # loaded by the engine itself, it would leave nothing bare
    rows = b.run(*PROMPT, "-o", "jsonl", GGML_BACKEND_PATH=plugin, GGML_CASCADE="reference").stdout.splitlines()
    assert [(json.loads(row)["backends"], json.loads(row)["mode"]) for row in rows] == [("CPU", "bare"), ("Cascade", "exact")]


def stopped_it_prints_what_it_has(b: Bench, seconds: int = 3) -> None:
    out = b.tmp / "part.json"
    process = subprocess.Popen(b.command("-p", "8", "-n", "4", "-r", "500", "-fa", "on", "-o", "json", "--out", str(out)),
                               env=b.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130 and "of 2 tests" in err, (process.returncode, err)
    if "0 of 2 tests" in err and seconds < 100:  # a busy machine: not even one round
        return stopped_it_prints_what_it_has(b, 3 * seconds)
    result = json.loads(out.read_text())
    assert result["complete"] is False and result["tests_wanted"] == 2 and len(result["tests"]) >= 1, result
    assert 1 <= result["tests"][-1]["rounds"] < 500, result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--only", help="run the checks whose name contains this")
    args = parser.parse_args()
    if not args.model.exists():
        print(f"skipped: {args.model.name} is missing; scripts/get-models fetches it")
        return SKIP
    for check in (messages_name_the_remedy, json_has_the_figures_and_llama_benchs_fields, rows_are_llama_benchs_and_ours,
                  reference_tells_its_parts, stopped_it_prints_what_it_has):
        if args.only and args.only not in check.__name__:
            continue
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as tmp:
            check(Bench(args.bin.resolve(), args.model.resolve(), pathlib.Path(tmp)))
        print(f"ok  {check.__name__}  {time.monotonic() - start:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
