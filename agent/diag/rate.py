"""The rate of large products against the board's dense peak."""

from agent.diag.limits import board_of, capped, compared
from agent.diag.verdict import Subject, Verdict, unknown
from vocab.catalogue.specs import TERA, Spec
from vocab.diag import Computed

LEAST_RATIO = 0.5  # large bf16 products reach 65 to 80 % of the dense peak; half of it is a board that holds back [H]


def verdict(figures: Computed, subject: Subject) -> Verdict:
    """Unknown for a GPU whose power somebody has limited: it is slower by order."""
    spec = board_of(subject, figures.device)
    if not isinstance(spec, Spec):
        return spec
    why = capped(subject)
    if why is not None:
        return unknown(f"{why}: its rate is no measure", {"measured": figures.flops_per_s})
    return compared(figures.kind, figures.flops_per_s, spec.bf16_flops_per_s, LEAST_RATIO, unit=TERA, name="TFLOP/s")
