"""What an engine found when it looked at itself, as checks for the judge: once for each run of its canary. Pure."""

from vocab.beat import Beat
from vocab.observations import Check

CHECK = "canary"


class Canaries:
    """The runs of one replica's canary that were told already."""

    def __init__(self) -> None:
        self._pid = 0
        self._told = 0

    def checks(self, beat: Beat | None, replica: str, at: float, node: str) -> tuple[Check, ...]:
        """The outcome of the last run, if there was one since the last call: what was found wrong stays so."""
        if beat is None or beat.canaries == 0 or (beat.pid, beat.canaries) == (self._pid, self._told):
            return ()
        self._pid, self._told = beat.pid, beat.canaries
        wrong = wrong_words(beat)
        return (
            Check(
                at=at,
                node=node,
                check=CHECK,
                replica=replica,
                result="problem" if wrong else "pass",
                code="canary" if wrong else None,
                text=wrong or None,
            ),
        )


def wrong_words(beat: Beat) -> str:
    """What its canary found wrong; empty if nothing."""
    found = [
        words
        for is_wrong, words in (
            (beat.wrong_product, "exact products came out wrong"),
            (beat.wrong_weights, "the weights in memory are not those that were loaded"),
            (beat.wrong_answer, "known prompts got other answers than before"),
        )
        if is_wrong
    ]
    return f"the engine's canary: {', '.join(found)}" if found else ""
