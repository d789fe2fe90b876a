import pytest
import torch

from engine.core.attention_gather import BLOCK, GatherBackend, _buckets
from engine.core.blocks import BlockPool
from engine.core.sequence import Sampling, Sequence, Span, Step

HEADS, KV_HEADS, DIM = 6, 2, 8


def plain(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, start: int) -> torch.Tensor:
    """Attention as the textbook has it: q of places ``start`` on, k and v of all places; (places, heads, dim)."""
    out = torch.empty_like(q)
    for row in range(len(q)):
        for head in range(HEADS):
            shared = head // (HEADS // KV_HEADS)
            seen = start + row + 1
            scores = (k[:seen, shared] @ q[row, head]) / DIM**0.5
            out[row, head] = scores.softmax(0) @ v[:seen, shared]
    return out


class Case:
    """Sequences of given lengths on one backend, with keys and values that are remembered."""

    def __init__(self, lengths: list[int]) -> None:
        self.backend = GatherBackend(layers=2, blocks=64, heads=HEADS, kv_heads=KV_HEADS, head_dim=DIM)
        self.pool = BlockPool(64, BLOCK)
        self.random = torch.Generator().manual_seed(3)
        self.sequences = [
            Sequence(str(n), [n] * length, Sampling(max_tokens=1), 0.0) for n, length in enumerate(lengths)
        ]
        self.keys = [self.made(length, KV_HEADS) for length in lengths]
        self.values = [self.made(length, KV_HEADS) for length in lengths]
        for one in self.sequences:
            assert self.pool.grow(one, len(one.tokens))

    def made(self, length: int, heads: int) -> torch.Tensor:
        return torch.randn(length, heads, DIM, generator=self.random)

    def attend(self, spans: list[tuple[int, int, int]]) -> None:
        """Run one step of (sequence, start, count) and compare it with the textbook."""
        step = Step(tuple(Span(self.sequences[number], start, count) for number, start, count in spans))
        self.backend.plan(step)
        queries = [self.made(count, HEADS) for _, _, count in spans]
        k, v = (
            torch.cat([kept[number][start : start + count] for number, start, count in spans])
            for kept in (self.keys, self.values)
        )
        wanted = [
            plain(q, self.keys[number], self.values[number], start)
            for q, (number, start, _) in zip(queries, spans, strict=True)
        ]
        found = self.backend.attend(1, torch.cat(queries), torch.cat((k, v), dim=1))
        torch.testing.assert_close(found, torch.cat(wanted), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("length", [1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 70])
def test_a_whole_prompt(length: int) -> None:
    Case([length]).attend([(0, 0, length)])


def test_a_prompt_in_chunks_and_then_single_tokens() -> None:
    case = Case([70])
    for start, count in ((0, 20), (20, 33), (53, 15), (68, 1), (69, 1)):
        case.attend([(0, start, count)])


def test_single_tokens_of_different_lengths_beside_a_prompt() -> None:
    case = Case([5, 40, 33, 100])
    for number, length in ((0, 4), (1, 39), (3, 99)):
        case.attend([(number, 0, length)])
    case.attend([(0, 4, 1), (1, 39, 1), (3, 99, 1), (2, 0, 33)])


def test_layers_do_not_mix() -> None:
    case = Case([20])
    case.attend([(0, 0, 19)])
    step = Step((Span(case.sequences[0], 0, 19),))
    case.backend.plan(step)
    case.backend.attend(0, case.made(19, HEADS), case.made(19, 2 * KV_HEADS))
    case.attend([(0, 19, 1)])


def test_equal_lengths_are_answered_in_one_call() -> None:
    assert _buckets([10, 11, 12, 13]) == [(0, 4)]


def test_one_long_context_does_not_pad_all_the_others() -> None:
    assert _buckets([10, 11, 12, 4_000]) == [(0, 3), (3, 4)]
