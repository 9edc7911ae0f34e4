"""What llama-perplexity --kl-divergence prints."""
from __future__ import annotations

import re

MEAN_KL = re.compile(r"^Mean\s+KLD:\s*(-?[\d.]+|-?nan|-?inf)", re.MULTILINE)


def mean_kl(printed: str) -> float:
    found = MEAN_KL.search(printed)
    assert found, printed[-1500:]
    return float(found[1])
