#!/usr/bin/env python3
"""Made-up results of `cascade calibrate` for tests of their page: a full one, a small one, and one that would break out of it."""
import math

from samples import write_sample

LAYERS = 22
WIDTHS = {"attn_q": 2048, "attn_output": 2048, "ffn_gate": 2048, "ffn_down": 5632}


def row(index, kind, layer):
    decay = 300 + 40 * index + 10 * layer
    curve = [[k, 1 - math.exp(-k / decay)] for k in (16, 32, 64, 128, 256, 512)]
    below = None if layer == 0 else 0.9 - 0.2 * index - 0.2 * math.exp(-layer / 4)
    return {"input": f"blk.{layer}.{kind}", "kind": kind, "layer": layer, "width": WIDTHS[kind], "k": 256, "maps": 2, "curve": curve,
            "energy": curve[4][1], "held_out_median": 0.3 + 0.1 * index + 0.01 * layer, "held_out_passing": 0.05 / (1 + layer),
            "inherited_energy": below, "updates": None if layer == 0 else 256 - index, "updates_saved": None if layer == 0 else index / 256}


def full():
    inputs = [row(index, kind, layer) for layer in range(LAYERS) for index, kind in enumerate(WIDTHS)]
    kinds = [{"kind": kind, "width": WIDTHS[kind], "k": 256, "energy": 0.6, "held_out_median": 0.4, "held_out_passing": 0.01,
              "inherited_energy": 0.5, "updates_saved": 0.01} for kind in WIDTHS]
    return {"kind": "calibration", "model": "tinyllama-1.1b-chat.gguf", "text": "wiki.test.raw", "architecture": "llama",
            "weights": "llama 1B Q4_1", "images": "f16", "version": "0.1.0", "date": "2026-11-15", "machine": "2 x a processor",
            "command": "cascade calibrate -m tinyllama.gguf -f wiki.test.raw", "tokens": 16384, "window": 2048, "gate": 0.05,
            "seconds": {"prefill": 243.4, "moments": 85.6, "eigenproblems": 600.0, "held_out": 9.0, "images": 20.0,
                        "bare_prefill": 240.0}, "ratio_to_bare_prefill": 1.49, "kinds": kinds, "inputs": inputs}


def small():
    return {"kind": "calibration", "model": "tiny.gguf", "inputs": [
        {"input": "blk.0.attn_q", "kind": "attn_q", "layer": 0, "width": 64, "k": 8, "curve": [[8, 0.5], [32, 0.9]]}]}


def hostile():
    markup = "</script><script>throw 'out'</script><img src=x onerror=\"throw 'out'\"><!--\u2028${1}"
    bad = {"input": markup, "kind": markup, "layer": 0, "width": markup, "k": None, "curve": [[16, 0.1], None, markup, [markup, 1]],
           "held_out_median": markup, "inherited_energy": [1]}
    return {"kind": "calibration", "model": markup * 3, "architecture": markup, "text": markup, "date": markup, "command": markup,
            "seconds": markup, "kinds": [None, markup, {"kind": markup, "energy": markup}],
            "inputs": [bad, dict(bad, layer=1, held_out_median=0.5), None, markup, {"kind": None, "layer": markup}]}


write_sample(__doc__, {"full": full, "small": small, "hostile": hostile})
