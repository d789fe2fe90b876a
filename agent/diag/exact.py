"""Exact products: one wrong result is a GPU that computes wrong: nothing is rounded (see ``engine.diag.exact``)."""

from agent.diag.verdict import CANARY, Subject, Verdict, passed, problem, unknown
from vocab.diag import Multiplied


def verdict(figures: Multiplied, subject: Subject) -> Verdict:
    """All right, or which were wrong."""
    del subject
    if figures.products == 0:
        return unknown("no product was made")
    if not figures.wrong:
        return passed(f"{figures.products} exact products", {"products": figures.products})
    which = ", ".join(dict.fromkeys(figures.wrong))
    text = f"{len(figures.wrong)} of {figures.products} exact products came out wrong: {which}"
    counts = {"products": figures.products, "wrong": len(figures.wrong)}
    return problem(text, "silent_corruption", counts, check=CANARY)
