"""Figures of a board compared: how much of its peak is enough, and when a comparison would be unfair."""

from agent.diag.verdict import Subject, Verdict, passed, problem, unknown
from vocab.catalogue.specs import Spec, spec_of

ON_CPU = "measured on the CPU in place of a virtual GPU: no board's figure to compare with"


def board_of(subject: Subject, device: str) -> Spec | Verdict:
    """The board's row, or why there is nothing to compare with."""
    if device != "cuda":
        return unknown(ON_CPU)
    return spec_of(subject.board) or unknown(f"no figures of {subject.board or 'this board'} are known")


def compared(what: str, measured: float, peak: float, least_ratio: float, *, unit: float, name: str) -> Verdict:
    """Pass from ``least_ratio`` of the peak on."""
    ratio = measured / peak
    text = f"{what} {measured / unit:.0f} of {peak / unit:.0f} {name} ({ratio:.0%}, at least {least_ratio:.0%})"
    figures = {"measured": measured, "peak": peak, "ratio": round(ratio, 3)}
    if ratio >= least_ratio:
        return passed(text, readings=figures)
    return problem(text, "slow_gpu", readings=figures)


def capped(subject: Subject) -> str | None:
    """Why the GPU cannot be at its best by order: a power limit below its default, or heat."""
    readings = subject.readings
    if readings is None:
        return None
    limit, usual = readings.power_limit_w, readings.power_limit_default_w
    if limit is not None and usual is not None and limit < usual:
        return f"its power limit is {limit:.0f} W of {usual:.0f} W"
    return None
