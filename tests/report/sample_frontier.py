#!/usr/bin/env python3
"""Made-up results of scripts/frontier for tests of their page: a full one, a small one, and one that would break out of it."""
from samples import write_sample

KINDS = ("attn_q", "attn_output", "ffn_gate", "ffn_down")


def point(family, name, share, kl, passed=None):
    made = {"family": family, "name": name, "bytes_share": share, "kl": kl, "kl_error": kl / 10, "top1": 1 - kl, "ppl_ratio": 1 + kl}
    if passed is not None:
        made |= {"passed": passed, "rough": 0.1, "inputs": {kind: {"passed": passed / (i + 1)} for i, kind in enumerate(KINDS)}}
    return made


def full():
    points = [point("llama-quantize", kind, share, kl) for kind, share, kl in (("Q4_0", 0.9, 0.02), ("Q3_K_M", 0.85, 0.05), ("Q2_K", 0.8, 0.3))]
    for family in ("k = 128", "k = 256", "k = 256, output's basis", "k = 256, rough q4_0"):
        points += [point(family, f"{family}, eps {eps}", 1.3 - eps, eps ** 2, eps) for eps in (0.05, 0.2, 0.4, 0.8)]
    return {"kind": "frontier", "model": "smollm2.gguf", "text": "wiki.test.raw", "weights": "Q4_1", "tokens": 4096, "date": "2026-11-15",
            "machine": "2 x a processor", "command": "scripts/frontier", "points": points}


def small():
    return {"kind": "frontier", "model": "tiny.gguf", "points": [point("one", "one", 0.5, 0.0)]}


def hostile():
    markup = "</script><script>throw 'out'</script><img src=x onerror=\"throw 'out'\"><!--\u2028${1}"
    bad = {"family": markup, "name": markup, "bytes_share": 0.5, "kl": 0.1, "top1": markup, "inputs": {markup: {"passed": 0.5}, "a": None}}
    return {"kind": "frontier", "model": markup, "text": markup, "command": markup, "tokens": markup,
            "points": [bad, dict(bad, kl=markup), dict(bad, family=None, inputs=None), None, markup]}


write_sample(__doc__, {"full": full, "small": small, "hostile": hostile})
