"""From the figures of a test to the Check that the judge sees."""

from agent.diag import allreduce, burn, copies, exact, memory, opening, rate
from agent.diag.plan import ALLREDUCE, EXACT
from agent.diag.verdict import CANARY, Subject, Verdict
from vocab.diag import AnyFigures, Begun, Burned, Computed, Copied, Multiplied, Opened, Patterned, Reduced, Unmeasured
from vocab.observations import Check


def rule(figures: AnyFigures, subject: Subject, node: str, at: float) -> Check | None:
    """None for what is no result."""
    found = _verdict(figures, subject)
    if found is None:
        return None
    test, verdict = found
    return Check(
        at=at,
        node=node,
        check=verdict.check or name_of(test),
        gpu=None if test == ALLREDUCE else subject.gpu,
        result=verdict.result,
        code=verdict.code,
        text=verdict.text,
        readings=verdict.readings,
    )


def name_of(test: str) -> str:
    """The name of the check that a test makes: an exact product is a canary, as the judge knows it."""
    return CANARY if test == EXACT else f"diag_{test}"


def _verdict(figures: AnyFigures, subject: Subject) -> tuple[str, Verdict] | None:
    match figures:
        case Begun():
            return None
        case Unmeasured():
            return figures.test, opening.unmeasured(figures)
        case Opened():
            return "open", opening.verdict(figures, subject)
        case Multiplied():
            return EXACT, exact.verdict(figures, subject)
        case Patterned():
            return "memory", memory.verdict(figures, subject)
        case Copied():
            return "copies", copies.verdict(figures, subject)
        case Computed():
            return "rate", rate.verdict(figures, subject)
        case Reduced():
            return ALLREDUCE, allreduce.verdict(figures, subject)
        case Burned():
            return "burn", burn.verdict(figures, subject)
