"""Full power for minutes: no wrong product, and no slower at the end than it began."""

from agent.diag.verdict import CANARY, Subject, Verdict, passed, problem
from vocab.diag import Burned

LEAST_KEPT = 0.8  # of the first rate; clocks settle some 10 % lower once a board is warm [H]


def verdict(figures: Burned, subject: Subject) -> Verdict:
    """A virtual GPU's rate is the CPU's, which others share: it is not compared."""
    del subject
    kept = figures.last_flops_per_s / figures.first_flops_per_s if figures.first_flops_per_s else 1.0
    counts = {"seconds": round(figures.seconds, 1), "products": figures.products, "wrong": figures.wrong}
    if figures.wrong:
        text = f"{figures.wrong} exact products came out wrong under load"
        return problem(text, "silent_corruption", counts, check=CANARY)
    if figures.device == "cuda" and kept < LEAST_KEPT:
        return problem(f"it kept {kept:.0%} of its rate over {figures.seconds:.0f} s", "slow_gpu", counts)
    return passed(f"{figures.seconds:.0f} s, {figures.products} products", counts)
