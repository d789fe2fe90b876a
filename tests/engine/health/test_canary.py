from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

from engine.diag.bench import Bench
from engine.health.canary import Canary
from engine.health.golden import Golden
from engine.health.outcome import Outcome, Told, learned, passed, problem
from engine.health.product import check_products, kinds_of
from engine.health.weights_sum import WeightsSum
from tests.engine.health.made import flip, loaded, weights_of

CPU = torch.device("cpu")


class Watch:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s

    def now(self) -> float:
        return self.now_s


def run(engine: Any) -> Any:
    assert engine.canary is not None
    return engine.canary.whole()


def last(pieces: Iterator[Told | None]) -> Told:
    found = [told for told in pieces if told is not None]
    assert len(found) == 1
    return found[0]


# ---- the whole of it, on a real engine ----


def test_the_first_run_has_learned_and_says_so_and_the_next_ones_pass(tiny_model: Path) -> None:
    engine = loaded(tiny_model)
    assert engine.canary is not None
    assert engine.canary.last.outcome is Outcome.LEARNED
    assert [run(engine).outcome for _ in range(3)] == [Outcome.PASSED] * 3
    assert engine.scheduler.pool.free == engine.scheduler.pool.count


def test_the_next_start_compares_with_what_the_first_has_kept(tiny_model: Path, tmp_path: Path) -> None:
    assert loaded(tiny_model, tmp_path).canary.last.outcome is Outcome.LEARNED  # type: ignore[union-attr]
    assert loaded(tiny_model, tmp_path).canary.last.outcome is Outcome.PASSED  # type: ignore[union-attr]
    assert not list(tmp_path.glob(".*.golden*"))


def test_what_was_kept_of_another_computation_is_noticed_at_the_next_start(tiny_model: Path, tmp_path: Path) -> None:
    loaded(tiny_model, tmp_path)
    [file] = tmp_path.glob("*.golden.json")
    kept = msgspec.json.decode(file.read_bytes(), type=Golden)
    file.write_bytes(msgspec.json.encode(msgspec.structs.replace(kept, weights=(kept.weights or 0) + 1)))
    assert loaded(tiny_model, tmp_path).canary.last.outcome is Outcome.WRONG_WEIGHTS  # type: ignore[union-attr]
    file.write_bytes(b"{")
    assert loaded(tiny_model, tmp_path).canary.last.outcome is Outcome.LEARNED  # type: ignore[union-attr]


@pytest.mark.parametrize("bit", [0, 22, 30, 31])
def test_any_flipped_bit_of_a_weight_is_found(tiny_model: Path, bit: int) -> None:
    engine = loaded(tiny_model)
    flip(weights_of(engine)["1.down"], 17, bit)
    assert run(engine).has(Outcome.WRONG_WEIGHTS)
    flip(weights_of(engine)["1.down"], 17, bit)
    assert run(engine).outcome is Outcome.PASSED


def test_a_large_flip_of_a_weight_changes_the_known_answers_too(tiny_model: Path) -> None:
    engine = loaded(tiny_model)
    flip(weights_of(engine)["0.out"], 3, 30)
    assert run(engine).has(Outcome.WRONG_ANSWER)


def test_a_flipped_bit_of_an_output_is_found(tiny_model: Path) -> None:
    engine = loaded(tiny_model)
    inner = engine.runner.logits

    def logits(step: Any) -> torch.Tensor:
        scores = inner(step).clone()
        flip(scores, 40, 29)
        return scores

    engine.runner.logits = logits  # type: ignore[method-assign]
    found = run(engine)
    assert found.outcome is Outcome.WRONG_ANSWER
    assert "prompt 1, token 1" in found.text


def test_nan_is_never_within_the_tolerance(tiny_model: Path) -> None:
    engine = loaded(tiny_model)
    engine.runner.logits = lambda step: torch.full((2, 272), float("nan"))  # type: ignore[method-assign]
    assert run(engine).outcome is Outcome.WRONG_ANSWER


def test_a_cache_without_room_makes_the_answer_unknown_and_nothing_wrong(tiny_model: Path) -> None:
    engine = loaded(tiny_model)
    engine.scheduler.pool.grow = lambda sequence, tokens: False  # type: ignore[method-assign]
    known = run(engine)
    assert not known.outcome.is_wrong


# ---- its parts ----


def test_exact_products_pass_in_every_kind_and_a_flipped_output_bit_is_found() -> None:
    kinds = kinds_of(CPU)
    assert "int8" in kinds
    assert last(check_products(Bench("cpu"), kinds)) == passed()
    found = last(check_products(Bench("cpu", is_corrupt=True), kinds))
    assert found.outcome is Outcome.WRONG_PRODUCT
    assert "int8 256x256x256" in found.text


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.int8])
def test_the_sum_of_weights_is_of_their_bits_in_any_type(dtype: torch.dtype) -> None:
    tensor = torch.arange(-50, 50).to(dtype)
    total = WeightsSum([tensor, torch.zeros(3, 4)])
    assert last(total.check()) == learned()
    assert last(total.check()) == passed()
    tensor.view(torch.uint8)[7] ^= 1
    assert last(total.check()).outcome is Outcome.WRONG_WEIGHTS


def test_the_sum_of_weights_is_the_same_wherever_they_begin() -> None:
    raw = torch.arange(100, dtype=torch.uint8)
    sums = [WeightsSum([raw[at:].clone().view(torch.int8)]) for at in (1, 4)]
    mapped = [WeightsSum([raw[at:].view(torch.int8)]) for at in (1, 4)]
    for one in (*sums, *mapped):
        assert last(one.check()) == learned()
    assert [one.known for one in sums] == [one.known for one in mapped]
    raw[99] ^= 128  # beyond the last whole word
    assert [last(one.check()).outcome for one in mapped] == [Outcome.WRONG_WEIGHTS] * 2


# ---- when it runs ----


def pieces(*outcomes: Told) -> Any:
    def check() -> Iterator[Told | None]:
        for told in outcomes:
            yield None
            yield told

    return check


def test_idle_pieces_come_one_at_a_time_and_then_not_for_a_while() -> None:
    watch = Watch()
    canary = Canary((pieces(passed()), pieces(passed())), watch, 60.0)
    assert [canary.idle() for _ in range(3)] == [0.0] * 3
    assert canary.runs == 1
    assert canary.idle() == 60.0
    watch.now_s += 59.0
    assert canary.idle() == 1.0
    watch.now_s += 1.0
    assert canary.idle() == 0.0
    assert canary.runs == 1


def test_who_asks_while_a_run_is_under_way_is_answered_by_the_next_one() -> None:
    canary = Canary((pieces(passed(), passed()),), Watch(), 60.0)
    canary.idle()
    answers: list[int] = []
    canary.ask(lambda _: answers.append(canary.runs))
    while canary.wanted:
        canary.piece()
    assert answers == [2]


def test_what_looks_wrong_while_a_run_is_under_way_makes_another_one_due() -> None:
    canary = Canary((pieces(passed()),), Watch(), 60.0)
    canary.idle()
    canary.suspect()
    assert [canary.idle() for _ in range(4)] == [0.0, 0.0, 0.0, 60.0]
    assert canary.runs == 2


def test_without_a_period_an_idle_engine_is_left_alone_but_answers_who_asks() -> None:
    canary = Canary((pieces(passed()),), Watch(), 0.0)
    assert canary.idle() is None
    canary.ask()
    while canary.wanted:
        canary.idle()
    assert (canary.runs, canary.idle()) == (1, None)


def test_what_was_found_wrong_once_stays_found() -> None:
    told = [problem(Outcome.WRONG_PRODUCT, "p"), passed()]
    canary = Canary((lambda: iter([told.pop(0)]),), Watch(), 0.0)
    assert canary.whole().outcome is Outcome.WRONG_PRODUCT
    assert canary.whole().outcome is Outcome.PASSED
    assert canary.wrong is not None
    assert canary.wrong.text == "p"


def test_no_memory_for_a_check_makes_it_unknown_and_any_other_error_ends_the_process() -> None:
    def check(error: BaseException) -> Any:
        def begin() -> Iterator[Told | None]:
            raise error
            yield None

        return begin

    short = Canary((check(torch.OutOfMemoryError("CUDA out of memory")), pieces(passed())), Watch(), 0.0)
    assert [told.outcome for told in short.whole().told] == [Outcome.UNKNOWN, Outcome.PASSED]
    with pytest.raises(RuntimeError, match="illegal"):
        Canary((check(RuntimeError("CUDA error: an illegal memory access")),), Watch(), 0.0).whole()
