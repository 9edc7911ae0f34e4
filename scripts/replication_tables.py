"""Tables of docs/replication.md from the JSON files that scripts/replicate writes."""

import json
import pathlib
import sys


def figure(values, name, digits=3, factor=1.0, unit=""):
    value = values.get(name)
    if value is None:
        return "-"
    text = f"{factor * value:.{digits}f}"
    interval = values.get(name + "_interval")
    if interval:
        text += f" ±{factor * (interval[1] - interval[0]) / 2:.{digits}f}"
    return text + unit


def percent(values, name):
    return figure(values, name, 1, 100.0, " %")


def table(header, rows):
    print("| " + " | ".join(header) + " |")
    print("|" + "---|" * len(header))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def summary_rows(results):
    for result in results:
        summary = result["summary"]
        yield [
            str(result["tokens"]),
            result["source"],
            f"{result['tau']:g}",
            result["method"],
            figure(summary, "mean_r", 0),
            figure(summary, "mean_r_share"),
            figure(summary, "mean_jaccard"),
            figure(summary, "mean_jaccard_independent"),
            percent(summary, "mean_turnover"),
            figure(summary, "mean_growth", 2),
            figure(summary, "missed", 0),
            figure(summary, "uncovered", 0),
            percent(summary, "gram_savings"),
            figure(summary, "mean_copy_error", 2),
        ]


def profile(results):
    """r of the independent choice by layer, and the deep half's turnover and growth under Algorithm 1."""
    for result in results:
        layers = result["layers"]
        if result["method"] == "threshold":
            counts = [layer["r"] for layer in layers]
            print(
                f"- T {result['tokens']}, {result['source']}, tau {result['tau']:g}: r {counts[0]:.0f} in the first layer, "
                f"peak {max(counts):.0f} in layer {counts.index(max(counts))}, {counts[-1]:.0f} in the last"
            )
        if result["method"] == "inherit":
            deep = layers[len(layers) // 2 :]
            turnovers = [100 * layer["turnover"] for layer in deep]
            growth = sum(layer["growth"] for layer in deep) / len(deep)
            print(
                f"- T {result['tokens']}, {result['source']}, tau {result['tau']:g}, Algorithm 1, deeper half: turnover "
                f"{min(turnovers):.1f} to {max(turnovers):.1f} %, r over independent r {growth:.2f}"
            )
    print()


def main():
    header = ["T", "source", "tau", "method", "mean r", "r/T", "Jaccard to the layer before", "to independent",
              "turnover", "growth", "missed", "uncovered", "Gram saved", "copy error"]
    for path in map(pathlib.Path, sys.argv[1:]):
        analysis = json.loads(path.read_text())
        print(f"## {path.stem}: {analysis['model']}, {analysis['n_layer']} layers, {analysis['date']}\n")
        table(header, summary_rows(analysis["results"]))
        profile(analysis["results"])
        for timing in analysis["timing"] or []:
            print(f"T {timing['tokens']}: {timing['ratio']:.2f} times the bare model's pass\n")


if __name__ == "__main__":
    main()
