from pathlib import Path

import pytest

from engine.core.flight import Flights
from engine.core.sequence import Sequence, Step
from engine.loading import Loaded, load_model
from tests.engine.core.test_runner import generate, wish
from tests.engine.replica import settings


def fly(model: Loaded, sequences: list[Sequence]) -> tuple[list[list[int]], int]:
    """What each gets with steps scheduled ahead, and how many steps were."""
    for one in sequences:
        model.scheduler.add(one)
    flights = Flights(model.runner, ahead=True, on_cuda=False)
    early = 0
    while model.scheduler.busy:
        step = model.scheduler.schedule()
        if step is not None:
            early += flights.busy
            flights.launch(step, 0)
        flight = flights.due(more=step is not None)
        if flight is not None:
            model.scheduler.settle(flight.step, flight.land())
    return [one.tokens[one.prompt_len :] for one in sequences], early


RULES: list[dict] = [
    {},
    {"temperature": 1.0, "seed": 5},
    {"stop_ids": frozenset(range(0, 272, 9))},
    {"temperature": 0.8, "top_p": 0.9, "seed": 6, "logprobs": 2},
    {"frequency_penalty": 0.5},
]


def wishes(rules: list[dict]) -> list[Sequence]:
    return [wish(str(number), 5 + 13 * number, 25, **rule) for number, rule in enumerate(rules)]


@pytest.mark.parametrize("rules", [RULES[:4], RULES], ids=["free", "with a rule that looks back"])
def test_steps_scheduled_ahead_give_what_steps_one_by_one_give(rules: list[dict], tiny_model: Path) -> None:
    wanted = generate(load_model(settings(tiny_model)), wishes(rules))
    model = load_model(settings(tiny_model))
    found, early = fly(model, wishes(rules))
    assert found == wanted
    assert early == 0 if rules is RULES else early > 10  # a rule that looks back must see the token first
    assert model.scheduler.pool.free == model.scheduler.pool.count


def test_preemption_and_steps_ahead_go_together(tiny_model: Path) -> None:
    lengths = (30, 31, 32, 33)
    roomy = [generate(load_model(settings(tiny_model)), [wish("a", length, 40)])[0] for length in lengths]
    model = load_model(settings(tiny_model))
    model.scheduler.pool.grow(wish("ballast", 1), model.scheduler.pool.count * 16 - 10 * 16)
    found, early = fly(model, [wish(str(length), length, 40) for length in lengths])
    assert model.scheduler.preemptions > 0
    assert early > 10
    assert found == roomy


class Prophet:
    """Guesses what will be drawn, every third token excepted."""

    def __init__(self, prompt_len: int, answer: list[int]) -> None:
        self._prompt_len = prompt_len
        self._answer = answer

    def awake(self, _: int) -> bool:
        """Always."""
        return True

    def learn(self, share: float, known: int) -> None:
        """There is nothing to learn."""

    def guess(self, tokens: list[int], most: int) -> tuple[int, ...]:
        """The answer's next tokens."""
        at = len(tokens) - self._prompt_len
        return tuple(token if n % 3 else 1 for n, token in enumerate(self._answer[at : at + most], at))


@pytest.mark.parametrize("ahead", [False, True])
def test_drafts_do_not_change_what_is_drawn(ahead: bool, tiny_model: Path) -> None:
    rules = [{}, {"temperature": 0.7, "seed": 3}, {"temperature": 1.0, "top_k": 3, "seed": 4}, RULES[4]]
    wanted = generate(load_model(settings(tiny_model)), wishes(rules))
    model = load_model(settings(tiny_model, speculative_tokens=4))
    model.scheduler.speculation.rows = 64
    asked = wishes(rules)
    for one, answer in zip(asked, wanted, strict=True):
        one.lookup = Prophet(one.prompt_len, answer)  # type: ignore[assignment]
    found = fly(model, asked)[0] if ahead else generate(model, asked)
    assert found == wanted
    speculation = model.scheduler.speculation
    assert 0 < speculation.accepted < speculation.drafted
    assert model.scheduler.pool.free == model.scheduler.pool.count


class Failing:
    """A runner without memory for its first step."""

    def run(self, step: Step) -> list[int]:
        """Fail as torch does."""
        raise RuntimeError("out of memory")


def test_steps_behind_one_that_failed_are_abandoned(tiny_model: Path) -> None:
    model = load_model(settings(tiny_model))
    sequences = wishes(RULES[:2])
    for one in sequences:
        model.scheduler.add(one)
    flights = Flights(Failing(), ahead=True, on_cuda=False)  # type: ignore[arg-type]
    for _ in range(2):
        step = model.scheduler.schedule()
        assert step is not None
        flights.launch(step, 0)
    flight = flights.due(more=True)
    assert flight is not None
    with pytest.raises(RuntimeError, match="out of memory"):
        flight.land()
    for step in (flight.step, *flights.abandon()):
        model.scheduler.withdraw(step)
    assert not flights.busy
    assert [one.tokens[one.prompt_len :] for one in sequences] == [[], []]
    assert fly(model, [])[0] == []
    assert [one.tokens[one.prompt_len :] for one in sequences] == generate(
        load_model(settings(tiny_model)), wishes(RULES[:2])
    )
