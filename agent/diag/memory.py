"""Memory patterns: a word that came back changed passed by ECC unseen."""

from agent.diag.verdict import CANARY, Subject, Verdict, passed, problem, unknown
from vocab.diag import Patterned

LEAST_SHARE = 0.5  # of the board's memory; less is no test of it


def verdict(figures: Patterned, subject: Subject) -> Verdict:
    """All words as written, or how many were not."""
    counts = {"tested_bytes": figures.tested_bytes, "wrong_words": figures.wrong_words}
    mib = figures.tested_bytes >> 20
    if figures.wrong_words:
        text = f"{figures.wrong_words} words of {mib} MiB came back changed, and ECC said nothing"
        return problem(text, "silent_corruption", counts, check=CANARY)
    total = subject.readings.memory_total_bytes if subject.readings else None
    if figures.device == "cuda" and total is not None and figures.tested_bytes < LEAST_SHARE * total:
        return unknown(f"only {mib} of {total >> 20} MiB could be tested, and these are well", counts)
    return passed(f"{mib} MiB with {figures.patterns} patterns", counts)
