"""What must hold between the counts of a summary of GGML_CASCADE_STATS, whatever was computed."""
from __future__ import annotations

import json
from pathlib import Path


def summaries_of(stats: Path) -> list[dict]:
    lines = [json.loads(line) for line in stats.read_text().splitlines()] if stats.is_file() else []
    return [line for line in lines if line["type"] == "summary"]


def share(a: float, b: float) -> float:
    return a / b if b else 0.0


def contradictions(summary: dict, layers: int, heads: int, rows: int | None = None) -> list[str]:
    """Relations that don't hold. `rows`: the most tokens that were computed, where it is known."""
    on = summary["on_covers"]
    on_covers = summary["seconds_on_covers"]
    whole = layers * heads
    relations = {
        "graphs = new + recognised + unreadable":
            0 <= summary["graphs"] - summary["graphs_new"] - summary["graphs_recognised"] <= summary["failures"],
        "rewritten graphs <= graphs": summary["graphs_rewritten"] <= summary["graphs"],
        "rows are whole tokens: a multiple of layers x heads": on["rows"] % whole == 0,
        "rows > 0 where something is covered": (on["rows"] > 0) == (on["covered"] > 0),
        "opened + speakers <= covered": on["opened"] + on["speakers"] <= on["covered"],
        "something speaks or is opened where something is covered": on["opened"] + on["speakers"] > 0 or on["covered"] == 0,
        "uncovered nodes <= layers x rewritten graphs": summary["uncovered"] <= layers * summary["graphs_rewritten"],
        "rows only in rewritten graphs": on["rows"] == 0 or summary["graphs_rewritten"] > 0,
        "seconds are not negative": min(*on_covers.values(), *(summary[f"seconds_{k}"] for k in ("ours", "engine", "reading"))) >= 0,
        "parts take no longer than the whole": sum(on_covers.values()) <= 1.01 * summary["seconds_ours"] + 0.01,
        "index_bytes > 0 where something is covered": on["covered"] == 0 or summary["index_bytes"] > 0,
    }
    if rows is not None:
        relations["rows <= tokens x layers x heads"] = on["rows"] <= rows * whole
    return [name for name, holds in relations.items() if not holds]
