"""Checks of an engine test: functions that return what they saw, or fail an assertion."""
from __future__ import annotations

import subprocess
import time
from typing import Callable, Sequence


def run_checks(checks: Sequence[Callable], subject: object, only: str = "") -> int:
    """One after the other, each with a line of its own. The exit code: 1 where one failed."""
    failed = 0
    for check in checks:
        if only not in check.__name__:
            continue
        start = time.monotonic()
        try:
            said = "ok    " + f"{check.__name__}: {check(subject)}"
        except (AssertionError, subprocess.TimeoutExpired) as wrong:
            failed += 1
            said = f"FAIL  {check.__name__}: {wrong}"
        print(f"{said}  ({time.monotonic() - start:.1f} s)", flush=True)
    return 1 if failed else 0
