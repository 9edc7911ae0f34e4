#!/usr/bin/env python3
"""Writes a made-up analysis, as `cascade analyze` would, for tests of its page. Usage: sample_analysis.py --full|--small|--hostile FILE

The figures are smooth inventions with the shape of real ones: r rises over depth, the first layers turn over most,
r grows with T. --small leaves out all that may be missing: one T, one tau, one method, no text, no intervals, an
interrupted run. --hostile has markup in every name, and values of the wrong kind."""

import math
import random

from samples import write_sample

LAYERS = 30
METHODS = {  # the factor on the independent r, how many times its turnover, the copy error's factor
    "threshold": (1.00, 1.00, 1.00),
    "leader": (0.93, 1.05, 1.03),
    "inherit": (1.18, 0.45, 0.92),
    "causal": (1.24, 0.42, 0.89),
    "linked": (1.10, 0.60, 0.97),
    "adaptive": (0.86, 0.55, 1.09),
    "unvalidated": (0.55, 0.02, 1.62),
    "random": (1.00, 1.40, 1.95),
}
SOURCE_SHARE = {"residual": 1.0, "key": 0.62}
TEXT = """ = Robert Boulter = 
 
 Robert Boulter is an English film , television and theatre actor . He had a guest @-@ starring role on the television \
series The Bill in 2000 . This was followed by a starring role in the play Herons written by Simon Stephens , which was \
performed in 2001 at the Royal Court Theatre . He had a guest role in the television series Judge John Deed in 2002 . \
In 2004 Boulter landed a role as " Craig " in the episode " Teddy 's Story " of the television series The Long Firm ; he \
starred alongside actors Mark Strong and Derek Jacobi . <b>Tags</b> & entities &amp; stay as they are: </script> .
 
 = = Career = = 
 
 In 2006 , Boulter starred alongside Whishaw in the play Citizenship written by Mark Ravenhill . He appeared on a 2006 \
episode of the television series , Doctors , followed by a role in the 2007 theatre production of How to Curse directed \
by Josie Rourke . How to Curse was performed at Bush Theatre in the London Borough of Hammersmith and Fulham . Boulter \
starred in two films in 2008 , Daylight Robbery by filmmaker Paris Leonti , and Donkey Punch directed by Olly Blackburn .
"""


def interval(mean, sd):
    half = 4.30 * sd / math.sqrt(3)  # Student's t, three windows
    return [mean - half, mean + half]


def with_spread(row, name, value, sd):
    row[name] = value
    row[name + "_sd"] = sd
    row[name + "_interval"] = interval(value, sd)


def layer_row(layer, tokens, source, tau, method, noise):
    r_factor, turnover_factor, error_factor = METHODS[method]
    depth = layer / (LAYERS - 1)
    share = (0.30 + 0.26 * math.sin(2.6 * depth) ** 2 + 0.06 * depth) * SOURCE_SHARE[source]
    share *= (0.3 / tau) ** 0.8 * (512 / tokens) ** 0.06 * (1 + noise.uniform(-0.02, 0.02))
    settling = 1 - math.exp(-layer / 4)  # the cascade starts as the independent choice and departs from it
    r = min(tokens, tokens * share * (1 + (r_factor - 1) * settling))
    row = {"layer": layer, "tau": tau * (1 + 0.25 * math.sin(3 * depth)) if method == "adaptive" else tau}
    with_spread(row, "r", r, 0.02 * r)
    row["r_share"] = r / tokens
    turnover = (1.1 * math.exp(-layer / 3) + 0.09) * turnover_factor * (1 + noise.uniform(-0.15, 0.15))
    row["adds"] = 0.55 * turnover * r if layer else 0
    row["removes"] = 0.45 * turnover * r if layer else 0
    row["turnover"] = row["jaccard_previous"] = None
    if layer:
        with_spread(row, "turnover", turnover, 0.06 * turnover)
        with_spread(row, "jaccard_previous", 1 / (1 + turnover), 0.01)
    agreement = {"threshold": 1, "random": 0.3}.get(method, 1 - 0.28 * settling * abs(math.log(r_factor)) / 0.2)
    with_spread(row, "jaccard_independent", max(0.2, agreement), 0.0 if method == "threshold" else 0.015)
    row["growth"] = 1 + (r_factor - 1) * settling
    row["missed"] = 0 if method == "threshold" else 0.02 * r
    row["uncovered"] = 0 if method == "threshold" else 0.01 * tokens
    row["gram_entries"] = tokens * tokens if layer == 0 or method == "threshold" else int(r * tokens)
    row["gram_savings"] = 1 - row["gram_entries"] / (tokens * tokens)
    row["multiply_adds"] = row["gram_entries"] * 576
    row["seconds"] = row["multiply_adds"] / 4e10
    row["copy_error"] = None
    if tokens == 512:
        with_spread(row, "copy_error", (0.42 - 0.2 * depth) * error_factor * tau / 0.3, 0.01)
    return row


def mean_of(rows, name):
    values = [row[name] for row in rows if row.get(name) is not None]
    return sum(values) / len(values) if values else None


def summary_of(rows, tokens):
    summary = {}
    for name, field in [("mean_r", "r"), ("mean_jaccard", "jaccard_previous"), ("gram_savings", "gram_savings"),
                        ("mean_jaccard_independent", "jaccard_independent"), ("mean_turnover", "turnover"),
                        ("mean_copy_error", "copy_error")]:
        mean = mean_of(rows, field)
        summary[name] = mean
        if mean is not None:
            summary[name + "_interval"] = interval(mean, 0.015 * abs(mean))
    summary["mean_r_share"] = summary["mean_r"] / tokens
    summary["mean_growth"] = mean_of(rows, "growth")
    for name in ("gram_entries", "multiply_adds", "seconds"):
        summary[name] = sum(row[name] for row in rows)
    return summary


def paper_of(method):
    rows = [{"layer": layer, "r": 69 + 150 * (1 - math.exp(-layer / 6)), "turnover": None if layer == 0 else
             0.05 + 1.85 * math.exp(-(layer - 1) / 2)} for layer in range(28)]
    return {"model": "GPT-J 6B", "mean_r": 205, "mean_jaccard": 0.94, "gram_savings": 0.52 if method == "inherit" else None,
            "layers": rows}


def similarity():
    return [[math.exp(-abs(a - b) / (3 + 0.6 * min(a, b))) for b in range(LAYERS)] for a in range(LAYERS)]


def pieces_of(text, count):
    pieces, word = [], ""
    for character in text:
        if character in " \n" and word.strip():
            pieces.append(word)
            word = ""
        if character == "\n":
            pieces.append(character)
        else:
            word += character
    return (pieces + [word] * bool(word))[:count]


def sample_text(noise, sources, taus, methods):
    pieces = pieces_of(TEXT, 512)
    sets = []
    for source in sources:
        for tau in taus:
            for method in methods:
                chosen = {i for i in range(len(pieces)) if noise.random() < 0.45 * SOURCE_SHARE[source] * 0.3 / tau}
                layers = []
                for _ in range(LAYERS):
                    layers.append(sorted(chosen))
                    chosen = chosen ^ {noise.randrange(len(pieces)) for _ in range(8)}
                sets.append({"source": source, "tau": tau, "method": method, "layers": layers})
    return {"tokens": len(pieces), "pieces": pieces, "sets": sets}


def full():
    noise = random.Random(7)
    sources, taus = ["residual", "key"], [0.3, 0.5]
    results = []
    for tokens in (512, 1024, 2048):
        for source in sources:
            for tau in taus:
                for method in METHODS:
                    rows = [layer_row(layer, tokens, source, tau, method, noise) for layer in range(LAYERS)]
                    matches = tokens == 512 and source == "residual" and tau == 0.3 and method in ("threshold", "inherit")
                    results.append({"tokens": tokens, "source": source, "tau": tau, "method": method, "windows": 3,
                                    "layers": rows, "summary": summary_of(rows, tokens),
                                    "paper": paper_of(method) if matches else None})
    return {
        "kind": "cascade-analysis", "version": 1, "model": "smollm2-135m-instruct-q4_1.gguf", "architecture": "llama",
        "text": "wiki.test.raw", "cascade": "0.1.0", "date": "2026-11-15", "n_layer": LAYERS, "windows": 3,
        "windows_done": 3, "complete": True, "sign": "absolute", "results": results,
        "layer_similarity": [{"tokens": tokens, "source": source, "tau": tau, "jaccard": similarity()}
                             for tokens in (512, 1024, 2048) for source in sources for tau in taus],
        "sample": sample_text(noise, sources, taus, METHODS),
        "timing": [{"tokens": 512, "bare_seconds": 1.9, "analysis_seconds": 4.0, "ratio": 2.1}],
    }


def small():
    rows = [{"layer": layer, "r": 40 + layer} for layer in range(4)]
    return {"kind": "cascade-analysis", "version": 1, "model": "tiny.gguf", "n_layer": 4, "windows": 8, "windows_done": 3,
            "complete": False, "results": [{"tokens": 64, "source": "residual", "tau": 0.3, "method": "threshold",
                                            "layers": rows, "summary": {"mean_r": 41.5}}]}


def hostile():
    markup = "</script><script>throw 'out'</script><img src=x onerror=\"throw 'out'\"><!--\u2028${1}"
    rows = [{"layer": layer, "r": 10, "r_interval": [9, None], "adds": markup, "turnover": markup} for layer in range(3)]
    result = {"tokens": 64, "source": markup, "tau": markup, "method": markup, "layers": rows + [None, markup],
              "summary": {"mean_r": 10, "gram_savings": 0.5, "seconds": markup}, "paper": {"model": markup, "mean_r": 5}}
    return {"model": markup * 3, "architecture": markup, "text": markup, "date": markup, "cascade": markup, "n_layer": markup,
            "complete": False, "windows": markup, "results": [result, None, markup], "timing": markup,
            "layer_similarity": [None, {"tokens": 64, "source": markup, "tau": markup, "jaccard": [[1, None], markup]}],
            "sample": {"pieces": [markup, None, 7, "\n\n", " ", ""],
                       "sets": [None, {"source": markup, "tau": markup, "method": markup, "layers": [[0, 99], None]}]}}


write_sample(__doc__, {"full": full, "small": small, "hostile": hostile})
