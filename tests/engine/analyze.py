#!/usr/bin/env python3
"""cascade analyze on a real model and the project's own documents.

Usage: analyze.py --bin DIR --model FILE [--only PART]
Exit code 0: all hold; 77: the model isn't there (scripts/get-models fetches it).
"""
import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

SKIP = 77
LAYERS = 30
DOCS = pathlib.Path(__file__).resolve().parents[2]
METHODS = ["threshold", "leader", "inherit", "causal", "linked", "adaptive", "unvalidated", "random"]
SHORT = ("-c", "64", "--copy-samples", "4")


class Analyze:
    def __init__(self, program: pathlib.Path, model: pathlib.Path, tmp: pathlib.Path) -> None:
        self.program = str(program)
        self.model = str(model)
        self.tmp = tmp
        self.text = tmp / "documents.txt"
        self.text.write_text("\n".join((DOCS / name).read_text() for name in
                                       ("docs/method.md", "docs/plugin.md", "README.md", "HACKING.md")))
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("GGML_", "LLAMA_", "CASCADE_"))}
        self.env |= {"XDG_CACHE_HOME": str(tmp / "cache"), "OMP_WAIT_POLICY": "passive"}

    def command(self, *args: str, text: pathlib.Path | None = None) -> list[str]:
        return [self.program, "analyze", "-m", self.model, "-f", str(text or self.text), "-t", "2", *args]

    def run(self, *args: str, code: int = 0, text: pathlib.Path | None = None) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(self.command(*args, text=text), env=self.env, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=300)
        assert done.returncode == code, f"exit code {done.returncode}, not {code}:\n{done.stderr[-2000:]}"
        return done

    def json(self, *args: str) -> dict:
        return json.loads(self.run(*args, "-o", "json").stdout)

    def kept(self) -> list[pathlib.Path]:
        return list((self.tmp / "cache").rglob("*.jsonl"))


def numbers(values: list) -> bool:
    return all(isinstance(value, (int, float)) for value in values)


def by_method(analysis: dict) -> dict[str, dict]:
    return {result["method"]: result for result in analysis["results"]}


def check_layers(result: dict) -> None:
    assert [layer["layer"] for layer in result["layers"]] == list(range(LAYERS))
    for layer in result["layers"]:
        assert numbers([layer[key] for key in ("tau", "r", "jaccard_independent", "growth", "missed", "uncovered")]), layer
        change = [layer[key] for key in ("adds", "removes", "turnover", "jaccard_previous")]
        assert numbers(change) if layer["layer"] > 0 else change == [None] * 4, layer
        assert len(layer["r_interval"]) == 2 and layer["r_interval"][0] <= layer["r"] <= layer["r_interval"][1], layer
        assert 0 < layer["r"] <= result["tokens"] and layer["copy_error"] >= 0, layer
    for key in ("mean_r", "mean_r_share", "mean_jaccard", "mean_jaccard_independent", "mean_turnover", "seconds"):
        assert numbers([result["summary"][key]]), key


def figures_at_512(a: Analyze) -> None:
    analysis = a.json("-c", "512", "--tau", "0.30", "--windows", "2", "--copy-samples", "4")
    assert analysis["kind"] == "cascade-analysis" and analysis["version"] == 1
    assert analysis["complete"] is True and analysis["windows_done"] == 2 and analysis["n_layer"] == LAYERS
    results = by_method(analysis)
    assert list(results) == METHODS and len(analysis["results"]) == len(METHODS), list(results)
    for result in results.values():
        assert (result["tokens"], result["source"], result["tau"], result["windows"]) == (512, "residual", 0.3, 2)
        check_layers(result)
        assert result["paper"] is None
    threshold = results["threshold"]["summary"]
    print(f"    threshold: r/T {threshold['mean_r_share']:.3f}, Jaccard {threshold['mean_jaccard']:.3f}")
    assert 0.3 < threshold["mean_r_share"] < 0.65, threshold
    assert 0.85 < threshold["mean_jaccard"] < 0.97, threshold
    assert threshold["gram_savings"] == 0 and threshold["missed"] == 0, threshold
    for method in ("leader", "causal", "linked"):
        assert results[method]["summary"]["uncovered"] == 0 and results[method]["summary"]["missed"] == 0, method
    assert results["random"]["summary"]["gram_savings"] is None
    errors = {method: result["summary"]["mean_copy_error"] for method, result in results.items()}
    assert 0 < errors["linked"] < errors["random"], errors
    for result in results.values():  # the paper's count: T^2 in the first layer, T r of the layer before after it
        entries = [layer["gram_entries"] for layer in result["layers"]]
        if result["method"] in ("inherit", "causal", "linked", "adaptive"):
            expected = [512 * 512] + [512 * layer["r"] for layer in result["layers"][:-1]]
            assert all(abs(x - y) <= 1e-4 * y for x, y in zip(entries, expected)), (result["method"], entries)
    similarity = analysis["layer_similarity"][0]["jaccard"]
    assert len(similarity) == LAYERS and all(similarity[i][i] == 1 for i in range(LAYERS))
    sample = analysis["sample"]
    assert sample["tokens"] == 512 == len(sample["pieces"]) and len(sample["sets"]) == len(METHODS)
    assert "".join(sample["pieces"][1:40]).strip() in a.text.read_text(), sample["pieces"][:40]
    assert not a.kept(), "a finished analysis leaves nothing behind"


def sources_taus_and_heads(a: Analyze) -> None:
    analysis = a.json(*SHORT, "--source", "all", "--tau", "0.3,0.5", "--methods", "threshold,linked")
    seen = {(r["source"], r["tau"], r["method"]) for r in analysis["results"]}
    assert seen == {(source, tau, method) for source in ("residual", "normalised", "key", "value")
                    for tau in (0.3, 0.5) for method in ("threshold", "linked")}, seen
    heads = a.json(*SHORT, "--source", "key", "--per-head", "--methods", "linked", "--timing")
    assert {r["source"] for r in heads["results"]} == {"key/0", "key/1", "key/2"}
    assert heads["results"][0]["summary"]["mean_copy_error"] is None, "one head's cover says nothing about all"
    assert heads["timing"][0]["bare_seconds"] > 0 and heads["timing"][0]["ratio"] > 0.5, heads["timing"]
    signed = by_method(a.json(*SHORT, "--sign", "signed", "--methods", "threshold"))["threshold"]
    absolute = next(r for r in analysis["results"] if (r["source"], r["tau"], r["method"]) == ("residual", 0.3, "threshold"))
    assert signed["summary"]["mean_r"] >= absolute["summary"]["mean_r"]


def tables_and_page(a: Analyze) -> None:
    table = a.run(*SHORT).stdout
    assert "30 layers" in table and "T = 64, source residual, tau = 0.3, windows 1" in table, table
    assert all(f"\n| {method} " in table for method in METHODS) and "linked, T = 64" in table, table
    file = a.tmp / "out.csv"
    assert a.run(*SHORT, "-o", "csv", "--out", str(file)).stdout == ""
    lines = file.read_text().splitlines()
    assert len(lines) == 1 + LAYERS * len(METHODS) and len({line.count(",") for line in lines}) == 1, lines[0]
    page = subprocess.run(a.command(*SHORT, "--methods", "linked", "-o", "html"), env=a.env, capture_output=True,
                          text=True, timeout=300)
    if page.returncode == 1 and "get-echarts" in page.stderr:
        print("    html: skipped, built without ECharts (scripts/get-echarts)")
        return
    assert page.returncode == 0 and page.stdout.lstrip().lower().startswith("<!doctype html>"), page.stderr
    assert "cascade-analysis" in page.stdout


def errors_name_the_remedy(a: Analyze) -> None:
    short = a.tmp / "short.txt"
    short.write_text("A few words.")
    empty = a.tmp / "empty.txt"
    empty.write_text("")
    usage, runtime = 2, 1
    for code, text, args, words in (
            (usage, a.tmp / "nowhere.txt", (), "--file"),
            (usage, None, ("--source", "magic"), "residual, normalised, key, value"),
            (usage, None, ("--methods", "magic"), "threshold"),
            (usage, None, ("--tau", "1.5"), "--tau"),
            (usage, None, ("-c", "1"), "--ctx-size"),
            (usage, None, ("-o", "pdf"), "html"),
            (runtime, None, ("-c", "10000"), "give -c 8192 or less"),
            (runtime, short, ("-c", "64"), "a smaller -c"),
            (runtime, empty, ("-c", "64"), "give a text file with -f"),
            (runtime, None, ("--out", str(a.tmp / "no" / "folder")), "can't write")):
        done = a.run(*args, code=code, text=text)
        assert words in done.stderr and done.stdout == "", (args, done.stderr)
    no_model = subprocess.run([a.program, "analyze", "-m", str(short), "-f", str(short)], env=a.env, capture_output=True,
                              text=True)
    assert no_model.returncode == runtime and "give a GGUF file with -m" in no_model.stderr, no_model
    a.env["XDG_CACHE_HOME"], before = str(short), a.env["XDG_CACHE_HOME"]
    assert "XDG_CACHE_HOME" in a.run(*SHORT, "--methods", "linked", code=runtime).stderr
    a.env["XDG_CACHE_HOME"] = before


def fewer_windows_than_asked_for_are_said_once(a: Analyze) -> None:
    text = a.tmp / "two.txt"
    text.write_text("The quick brown fox jumps over the lazy dog. " * 14)
    done = a.run(*SHORT, "--windows", "5", "--methods", "threshold", "-o", "json", text=text)
    assert json.loads(done.stdout)["windows_done"] == 2 and done.stderr.count("windows of 64 tokens") == 1, done.stderr


def without_times(value):
    if isinstance(value, dict):
        return {k: without_times(v) for k, v in value.items() if not k.startswith("seconds")}
    return [without_times(v) for v in value] if isinstance(value, list) else value


def stopped_after_a_window(a: Analyze, args: tuple[str, ...]) -> dict:
    process = subprocess.Popen(a.command(*args, "-o", "json"), env=a.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True)
    end = time.monotonic() + 120
    while not any(file.read_text().count("{\"bare\"") >= 2 for file in a.kept()):
        assert time.monotonic() < end and process.poll() is None, "no window was finished, or all were"
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, (process.returncode, err)
    assert "--resume" in err, err
    return json.loads(out)


def an_interrupted_run_goes_on(a: Analyze) -> None:
    args = (*SHORT, "--windows", "8", "--methods", "linked,random")
    whole = a.json(*args)
    part = stopped_after_a_window(a, args)
    assert part["complete"] is False and 2 <= part["windows_done"] < 8 == part["windows"], part["windows_done"]
    assert {result["windows"] for result in part["results"]} == {part["windows_done"]}
    (file,) = a.kept()
    with file.open("a") as damaged:
        damaged.write('{"tokens": 64, "index": 7, "ser')
    resumed = a.json(*args, "--resume")
    assert resumed["complete"] is True and resumed["windows_done"] == 8
    assert without_times(resumed) == without_times(whole)
    assert not a.kept(), "a finished analysis leaves nothing behind"
    print(f"    stopped after {part['windows_done']} of 8 windows")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--only", help="run the checks whose name contains this")
    args = parser.parse_args()
    if not args.model.exists():
        print(f"skipped: {args.model.name} is missing; scripts/get-models fetches it")
        return SKIP
    for check in (errors_name_the_remedy, fewer_windows_than_asked_for_are_said_once, sources_taus_and_heads,
                  tables_and_page, an_interrupted_run_goes_on, figures_at_512):
        if args.only and args.only not in check.__name__:
            continue
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as tmp:
            check(Analyze(args.bin.resolve() / "cascade", args.model.resolve(), pathlib.Path(tmp)))
        print(f"ok  {check.__name__}  {time.monotonic() - start:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
