"""Guessing tokens by looking them up: what followed the last time that the text ended like this.

A draft is computed behind the last known token, in the same step and by the same rule as any other tokens. The
tokens drawn from its logits are those that would have been drawn without it, for a draw depends on the logits and
on (seed, position) alone; the draft only decides how many of them are of use. So answers do not change, greedy or
sampled, and a wrong guess costs some rows of one step. Its keys and values are overwritten by what is true.

It stops by itself. Drafts take only rows that are nearly free: on small batches a step is bound by reading the
weights, so all drafts of a step together fill it up to ``rows``, and large batches get none. A sequence whose
drafts are mostly wrong gets none for a while.
"""

from collections.abc import Sequence as Tokens

from engine.core.sequence import Sequence

DRAFT_ROWS = {"cpu": 8, "cuda": 64}  # of a step: more take longer than reading the weights does (a GPU's ridge: ~200)


class Speculation:
    """The rule of drafts of one engine, and its counts. ``tokens`` 0 drafts nothing."""

    def __init__(self, tokens: int, rows: int = 8) -> None:
        self.tokens = tokens  # of one draft at most
        self.rows = rows  # tokens of a step of decodes, drafts included
        self.drafts = 0
        self.drafted = 0
        self.accepted_at = [0] * tokens  # by place in the draft

    @property
    def accepted(self) -> int:
        """Drafted tokens that were right."""
        return sum(self.accepted_at)

    def _room(self, decodes: int) -> int:
        return min(self.tokens, self.rows // decodes - 1) if decodes else 0

    def wanted(self, running: Tokens[Sequence]) -> bool:
        """Whether a draft may come as soon as the tokens under way are known."""
        return self._room(len(running)) > 0 and any(one.lookup.awake(len(one.tokens)) for one in running)

    def draft(self, sequence: Sequence, decodes: int) -> tuple[int, ...]:
        """A guess at what follows, for one of so many sequences that decode in this step."""
        most = min(self._room(decodes), sequence.left - 1)
        if most <= 0 or sequence.stateful or not sequence.lookup.awake(len(sequence.tokens)):
            return ()
        return sequence.lookup.guess(sequence.tokens, most)

    def learn(self, sequence: Sequence, draft: tuple[int, ...], accepted: int) -> None:
        """Book how many tokens of a draft were right."""
        self.drafts += 1
        self.drafted += len(draft)
        for place in range(accepted):
            self.accepted_at[place] += 1
        sequence.lookup.learn(accepted / len(draft), len(sequence.tokens))


def agreed(draft: tuple[int, ...], drawn: Tokens[int]) -> int:
    """How many tokens of a draft are those that were drawn in their places."""
    return next((place for place, token in enumerate(draft) if token != drawn[place]), len(draft))
