import pytest
import torch

from engine.core.sequence import Sampling, Sequence, Span, Step
from engine.health.rates import measure
from engine.health.slowness import ENOUGH, LEARNED, SKIPPED, Slowness
from engine.health.step_watch import Figures, StepWatch
from engine.roofline import Bound, Roof, Shape

SHAPE = Shape(
    layer_parameters=1000, head_parameters=200, hidden=10, layers=2, heads=4, kv_heads=2, head_dim=8, weight_bytes=2
)


def step(*spans: tuple[int, int, int]) -> Step:
    one = Sequence("s", [1] * 100, Sampling(max_tokens=1), 0.0)
    return Step(tuple(Span(one, start, count, samples=samples) for start, count, samples in spans))


def test_a_step_is_counted_by_its_spans_and_the_rows_that_sample() -> None:
    watch = StepWatch(SHAPE, Roof(), Roof(), 0)
    one = watch.took(step((99, 1, 1)), 1.0)
    assert one.flops == 2 * 1000 + 2 * 200 + 4 * 2 * 4 * 8 * 100
    watch.took(step((0, 16, 0)), 1.0)
    assert watch.total.flops == one.flops + 2 * 1000 * 16 + 4 * 2 * 4 * 8 * 16 * 17 / 2


def test_shares_are_of_the_peak_that_is_known_and_none_of_one_that_is_not() -> None:
    known = StepWatch(SHAPE, Roof(1e6, 1e6), Roof(1e6, 5e5), 0)
    of = known.took(step((99, 1, 1)), 1.0)
    found = known.figures()
    assert (found.mfu, found.mbu) == (of.flops / 1e6, of.bytes / 1e6)
    assert found.copy_share == pytest.approx(2 * (found.mbu or 0))
    unknown = StepWatch(SHAPE, Roof(), Roof(1e6, 5e5), 0)
    unknown.took(step((99, 1, 1)), 1.0)
    assert (unknown.figures().mfu, unknown.figures().mbu) == (None, None)
    assert StepWatch(SHAPE, Roof(), Roof(), 0).figures() == Figures()


def test_what_steps_wait_for_is_counted() -> None:
    watch = StepWatch(SHAPE, Roof(), Roof(1e9, 1e3, 1e-6), 76)
    watch.took(step((99, 1, 1)), 10.0)
    assert watch.bounds == {Bound.COMPUTE: 0, Bound.MEMORY: 1, Bound.LAUNCHES: 0}


def test_an_engine_that_becomes_slower_than_it_was_says_by_how_much() -> None:
    slow = Slowness()
    for turn in range(LEARNED + SKIPPED):
        slow.add(8, 2.0 + 0.01 * (turn % 3))
    assert slow.over_floor == pytest.approx(2.01, abs=0.02)
    assert slow.over_usual is None
    for _ in range(ENOUGH):
        slow.add(8, 2.02)
    assert slow.over_usual == 1.0
    for _ in range(100):
        slow.add(9, 6.03)  # of the same size by powers of two
    assert slow.over_usual == pytest.approx(3.0, abs=0.02)


def test_each_size_of_batch_has_a_usual_value_of_its_own() -> None:
    slow = Slowness()
    for _ in range(LEARNED + SKIPPED + ENOUGH):
        slow.add(1, 1.5)
        slow.add(64, 4.0)
    assert slow.over_usual == 1.0


def test_a_cpu_has_rates_and_their_ridge() -> None:
    found = measure(torch.device("cpu"), torch.float32)
    assert found.flops_per_s
    assert found.bytes_per_s
    assert found.launch_s
    assert found.ridge
