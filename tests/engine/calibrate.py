#!/usr/bin/env python3
"""cascade calibrate on a real model: killed at random and gone on with, the sidecar is the same to the byte; and no other model takes it.

Usage: calibrate.py --bin DIR --model FILE
Exit code 0: all hold; 77: the model isn't there (scripts/get-models fetches it).
"""
from __future__ import annotations

import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/support"), str(ROOT / "tests/engine")]
from checks import run_checks  # noqa: E402
from programs import SKIP, Programs  # noqa: E402

LAYERS, WIDTH = 30, 576  # SmolLM2 135M
KINDS = {"attn_q": WIDTH, "ffn_gate": WIDTH}  # the widest input would take most of the time
K, TOKENS, WINDOW = 64, 1024, 512


class Calibrate:
    def __init__(self, programs: Programs, tmp: pathlib.Path) -> None:
        self.p, self.tmp = programs, tmp
        self.text = tmp / "documents.txt"
        self.text.write_text("\n".join((ROOT / name).read_text() for name in ("docs/method.md", "docs/plugin.md", "HACKING.md")))
        self.sidecar = tmp / "straight.cascade.gguf"
        self.seconds = 0.0  # of the run that nobody killed

    def command(self, sidecar: pathlib.Path, *args: str) -> list[str]:
        return [str(self.p.bin / "cascade"), "calibrate", "-m", self.p.model, "-f", str(self.text), "-k", str(K), "--tokens",
                str(TOKENS), "-c", str(WINDOW), "-t", "2", "--inputs", ",".join(KINDS), "-o", str(sidecar), "--report", "json", *args]

    def env(self, cache: str) -> dict[str, str]:
        return self.p.environment(None, XDG_CACHE_HOME=str(self.tmp / cache))


def calibrates(c: Calibrate) -> str:
    start = time.monotonic()
    done = subprocess.run(c.command(c.sidecar), env=c.env("cache"), capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-2000:]
    c.seconds = time.monotonic() - start
    report = json.loads(done.stdout)
    assert len(report["inputs"]) == len(KINDS) * LAYERS, len(report["inputs"])
    for row in report["inputs"]:
        assert row["width"] == KINDS[row["kind"]] and row["k"] == K, row
        energies = [energy for _, energy in row["curve"]]
        assert energies == sorted(energies) and 0 < energies[0] <= energies[-1] <= 1, row
        assert 0 <= row["held_out_median"] <= 1 and 0 <= row["held_out_passing"] <= 1, row
        assert (row["inherited_energy"] is None) == (row["layer"] == 0), row
    assert not list((c.tmp / "cache").rglob("calibrate-*")), "what was kept for resuming is still there"
    assert "no input of 60 pays" in done.stderr, done.stderr[-500:]
    size = c.sidecar.stat().st_size
    assert size == report["sidecar_bytes"]
    attention = next(kind for kind in report["kinds"] if kind["kind"] == "attn_q")
    return f"{size / 1e6:.1f} MB, attention input's energy at {K}: {attention['energy']:.3f}"


def goes_on_after_being_killed(c: Calibrate) -> str:
    """At random, three times without a warning and once with one."""
    seed = int(time.time())
    chance = random.Random(seed)
    sidecar = c.tmp / "killed.cascade.gguf"
    kept = 0
    for attempt in range(4):
        child = subprocess.Popen(c.command(sidecar, "--resume"), env=c.env("killed"), stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(0.05, 0.3) * c.seconds)
        child.kill() if attempt < 3 else child.terminate()
        child.wait(timeout=120)
        kept = max(kept, len(list((c.tmp / "killed").rglob("basis-*"))))
    done = subprocess.run(c.command(sidecar, "--resume"), env=c.env("killed"), capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-2000:]
    assert sidecar.read_bytes() == c.sidecar.read_bytes(), f"another sidecar after being killed (seed {seed})"
    return f"the same to the byte; at most {kept} bases were kept when killed (seed {seed})"


def takes_several_passes_where_memory_is_short(c: Calibrate) -> str:
    sidecar = c.tmp / "passes.cascade.gguf"
    done = subprocess.run(c.command(sidecar, "--memory", "0.035"), env=c.env("passes"), capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-2000:]
    passes = json.loads(done.stdout)["passes_over_text"]
    assert passes > 1, passes
    assert sidecar.read_bytes() == c.sidecar.read_bytes(), "another sidecar with less memory"
    return f"the same to the byte in {passes} passes"


def is_known_by_doctor_and_for_this_model_alone(c: Calibrate) -> str:
    def doctor(model: str) -> str:
        done = subprocess.run([str(c.p.bin / "cascade"), "doctor", "-m", model], capture_output=True, text=True, timeout=300,
                              env=c.p.environment("near", GGML_CASCADE_SIDECAR=str(c.sidecar)))
        return done.stdout + done.stderr

    said = doctor(c.p.model)
    assert f"{len(KINDS) * LAYERS} subspaces" in said and "another file" not in said, said
    other = c.tmp / "other.gguf"  # the same model, one byte more
    other.write_bytes(pathlib.Path(c.p.model).read_bytes() + b"\0")
    said = doctor(str(other))
    assert "another file" in said, said
    damaged = bytearray(c.sidecar.read_bytes())
    damaged[-100] ^= 1
    c.sidecar.with_suffix(".damaged").write_bytes(damaged)
    c.sidecar, whole = c.sidecar.with_suffix(".damaged"), c.sidecar
    said = doctor(c.p.model)
    c.sidecar = whole
    assert "damaged" in said, said
    return "taken for its own, noted for another, refused where damaged"


PARTS = (calibrates, goes_on_after_being_killed, takes_several_passes_where_memory_is_short,
         is_known_by_doctor_and_for_this_model_alone)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--model", type=pathlib.Path, default=ROOT / ".deps/models/smollm2-135m-instruct-q4_1.gguf")
    args = parser.parse_args()
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    if not args.model.exists():
        print(f"skipped: {args.model.name} is missing")
        return SKIP
    with tempfile.TemporaryDirectory(prefix="calibrate-") as name:
        c = Calibrate(Programs(args.bin.resolve(), args.model.resolve()), pathlib.Path(name))
        return run_checks(PARTS, c)


if __name__ == "__main__":
    sys.exit(main())
