"""Whole steps on the paged backend: the fused model and its replayed decodes say what the plain model says."""

from itertools import pairwise
from pathlib import Path

import pytest
import torch

from engine.core.attention_gather import GatherBackend
from engine.core.blocks import BlockPool
from engine.core.model import Forward, Model
from engine.core.sequence import Sampling, Sequence, Span, Step
from engine.cuda.attention import BLOCK, PagedBackend
from engine.cuda.graphs import Eager, GraphedModel, sizes
from engine.cuda.model import FusedModel
from engine.cuda.prompts import Attend
from engine.files.weights import join
from engine.loading import _from_folder
from tests.engine.cuda.test_prompts import textbook
from tests.engine.tiny import FAMILIES, config, write_model

CPU = torch.device("cpu")
ROWS = 4
LONGEST = 96


class Twins:
    """The plain model on its backend and the fused one on the paged backend, with one table of blocks for both."""

    def __init__(self, folder: Path, *, graphs: bool = False, dtype: torch.dtype = torch.float32,
                 prompts: Attend | None = None) -> None:  # fmt: skip
        parts = _from_folder(folder)
        arch = parts.arch
        weights = join(parts.checkpoint, arch)
        shape = {"layers": arch.layers, "blocks": 32, "heads": arch.heads, "kv_heads": arch.kv_heads,
                 "head_dim": arch.head_dim}  # fmt: skip
        self.plain = Model(arch, weights, LONGEST)
        self.gather = GatherBackend(**shape)
        self.paged = PagedBackend(
            **shape, most_tokens=64, most_rows=ROWS, longest=LONGEST, device=CPU, dtype=dtype, prompts=prompts
        )  # fmt: skip
        cast = {name: tensor.to(dtype) for name, tensor in weights.items()}
        self.fused: Forward = FusedModel(arch, cast, LONGEST)
        if graphs:
            hidden = torch.empty(0, arch.hidden)
            graphed = GraphedModel(self.fused, self.paged, ROWS, hidden, Eager)
            graphed.capture()
            self.fused = graphed
        self.pool = BlockPool(32, BLOCK)

    def step(self, *asked: tuple[Sequence, int]) -> tuple[torch.Tensor, torch.Tensor]:
        """Compute the next ``count`` tokens of each sequence on both; their logits."""
        spans = []
        for sequence, count in asked:
            assert self.pool.grow(sequence, sequence.computed + count)
            spans.append(Span(sequence, sequence.computed, count))
        step = Step(tuple(sorted(spans, key=lambda span: (span.count > 1, span.start))))
        tokens = [t for s in step.spans for t in s.sequence.tokens[s.start : s.start + s.count]]
        positions = [p for s in step.spans for p in range(s.start, s.start + s.count)]
        said = []
        for model, backend in ((self.plain, self.gather), (self.fused, self.paged)):
            backend.plan(step)
            with torch.inference_mode():
                said.append(model.logits(model.forward(torch.tensor(tokens), torch.tensor(positions), backend)).float())
        for sequence, count in asked:
            sequence.computed += count
        return said[0], said[1]


@pytest.fixture(scope="module")
def little(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every program costs the interpreter milliseconds: two layers and three heads are enough."""
    shape = config(num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1)
    return write_model(tmp_path_factory.mktemp("little") / "model", shape)


def wish(name: str, length: int) -> Sequence:
    return Sequence(name, [3 + (length * 31 + at * 7) % 250 for at in range(length)], Sampling(max_tokens=9), 0.0)


def same(pair: tuple[torch.Tensor, torch.Tensor], close: float = 1e-4) -> None:
    torch.testing.assert_close(pair[1], pair[0], atol=close, rtol=close)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_gives_the_same_logits(family: str, tmp_path: Path) -> None:
    twins = Twins(write_model(tmp_path / "model", {**FAMILIES[family], "num_hidden_layers": 1}))
    one = wish("a", 5)
    same(twins.step((one, 3)))
    same(twins.step((one, 1)))


@pytest.mark.parametrize("graphs", [False, True], ids=["plain", "replayed"])
def test_prompts_chunks_and_single_tokens_in_one_step(graphs: bool, little: Path) -> None:
    twins = Twins(little, graphs=graphs)
    long, short = wish("long", 40), wish("short", 5)
    same(twins.step((short, 2), (long, 17)))
    same(twins.step((short, 1), (long, 5)))
    same(twins.step((long, 1), (short, 1)))
    same(twins.step((long, 1)))


def test_whole_prompts_go_another_way_and_chunks_do_not(little: Path) -> None:
    asked: list[int] = []

    def prompts(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, bounds: torch.Tensor, longest: int) -> torch.Tensor:
        asked.append(len(q))
        return textbook(q, k, v, bounds, longest)

    twins = Twins(little, prompts=prompts)
    one, two, three = wish("one", 9), wish("two", 4), wish("three", 5)
    same(twins.step((one, 5), (two, 3)))
    same(twins.step((two, 1), (three, 4)))
    assert asked == [8, 8, 4, 4], "in both layers: two prompts, then one beside a decode"
    same(twins.step((one, 3)))
    assert len(asked) == 4, "a prompt that goes on has keys in the cache"


def test_replayed_decodes_are_padded_and_the_pads_touch_nothing(little: Path) -> None:
    twins = Twins(little, graphs=True)
    three = [wish(name, length) for name, length in (("a", 4), ("b", 6), ("c", 19))]
    for one in three:
        twins.step((one, one.pending - 2))
    before = twins.paged._cache.clone()
    same(twins.step(*((one, 1) for one in three)))
    changed = (twins.paged._cache != before).flatten(3).any(-1)[0, 0].nonzero().flatten().tolist()
    assert changed == sorted(one.blocks[(one.computed - 1) // BLOCK] * BLOCK + (one.computed - 1) % BLOCK
                             for one in three)  # fmt: skip


def test_a_row_of_the_table_follows_a_sequence_that_lost_its_blocks(little: Path) -> None:
    twins = Twins(little)
    one = wish("a", 20)
    same(twins.step((one, 18)))
    twins.pool.release(one)
    one.preemptions += 1
    assert twins.pool.grow(wish("other", 20), 20), "its blocks go to another"
    same(twins.step((one, 19)))
    same(twins.step((one, 1)))


def test_wiped_blocks_are_zeros_in_all_layers_and_no_others(little: Path) -> None:
    paged = Twins(little).paged
    paged._cache.fill_(float("nan"))
    paged.wipe([0, 2, 31])
    for block in range(32):
        of_block = paged._cache[:, :, block * BLOCK : (block + 1) * BLOCK]
        assert (of_block == 0).all() if block in {0, 2, 31} else of_block.isnan().all()


def test_half_precision_stays_close(tmp_path: Path) -> None:
    twins = Twins(write_model(tmp_path / "model", config(num_hidden_layers=1)), dtype=torch.float16)
    one = wish("a", 5)
    same(twins.step((one, 3)), close=0.05)
    same(twins.step((one, 1)), close=0.05)


def test_a_model_that_turns_its_own_heads_can_use_the_paged_cache(little: Path) -> None:
    twins = Twins(little)
    twins.fused = twins.plain
    one = wish("a", 5)
    same(twins.step((one, 3)))
    same(twins.step((one, 1)))


@pytest.mark.parametrize(("most", "wanted"), [(1, [1]), (4, [1, 2, 4]), (16, [1, 2, 4, 8, 16]), (12, [1, 2, 4, 8, 12])])
def test_few_rows_have_fine_sizes(most: int, wanted: list[int]) -> None:
    assert sizes(most) == wanted


def test_many_rows_waste_at_most_a_fifth() -> None:
    found = sizes(256)
    assert found[-1] == 256
    assert all((high - low - 1) / high <= 0.2 for low, high in pairwise(found) if low >= 32)
