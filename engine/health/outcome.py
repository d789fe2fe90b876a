"""What a canary can find, one word each, and what it told of its last whole run."""

from enum import StrEnum

import msgspec


class Outcome(StrEnum):
    """Of one check, in the order of what matters more."""

    WRONG_PRODUCT = "wrong_product"
    WRONG_WEIGHTS = "wrong_weights"
    WRONG_ANSWER = "wrong_answer"
    UNKNOWN = "unknown"  # it could not be asked, as memory was short
    LEARNED = "learned"  # there was nothing to compare with; from now on there is
    PASSED = "passed"

    @property
    def is_wrong(self) -> bool:
        """Whether something computed or kept a value that is not right."""
        return self in {Outcome.WRONG_PRODUCT, Outcome.WRONG_WEIGHTS, Outcome.WRONG_ANSWER}


class Told(msgspec.Struct, frozen=True):
    """The outcome of one check."""

    outcome: Outcome
    text: str = ""


class Run(msgspec.Struct, frozen=True):
    """One whole run: ``seconds`` of computing, without the pauses between its pieces."""

    at: float  # monotonic
    seconds: float
    told: tuple[Told, ...]

    @property
    def outcome(self) -> Outcome:
        """The one that matters most."""
        order = list(Outcome)
        return min((one.outcome for one in self.told), key=order.index)

    @property
    def text(self) -> str:
        """What was found, in words; empty if nothing was."""
        return "; ".join(one.text for one in self.told if one.text)

    def has(self, outcome: Outcome) -> bool:
        """Whether one of its checks came out so."""
        return any(one.outcome is outcome for one in self.told)


def passed() -> Told:
    """Compared, and equal."""
    return Told(Outcome.PASSED)


def learned() -> Told:
    """Nothing to compare with yet."""
    return Told(Outcome.LEARNED)


def problem(outcome: Outcome, text: str) -> Told:
    """Compared, and not equal."""
    return Told(outcome, text)
