import pytest

from engine.api.gate import Gate, Unavailable
from vocab.errors import Refused


def gate(**state: object) -> Gate:
    made = Gate()
    made.loaded = True
    for name, value in state.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize(
    ("state", "word"),
    [
        ({}, ""),
        ({"loaded": False}, "loading"),
        ({"fenced": True}, "fenced"),
        ({"exit_at": 5.0}, "draining"),
        ({"exit_at": 5.0, "fenced": True, "loaded": False}, "draining"),
        ({"failed": True, "exit_at": 5.0}, "failed"),
    ],
)
def test_the_word_for_what_keeps_new_work_out(state: dict[str, object], word: str) -> None:
    assert gate(**state).closed_by == word
    assert gate(**state).ready() == (not word, word or "ready")


def test_panic_opens_a_fence_and_nothing_else() -> None:
    gate(fenced=True).enter(panic=True)
    for state in ({"fenced": True, "exit_at": 5.0}, {"loaded": False}, {"failed": True}):
        with pytest.raises(Unavailable):
            gate(**state).enter(panic=True)


def test_a_fence_can_be_lifted_and_an_exit_cannot() -> None:
    one = gate(fenced=True)
    one.lift()
    one.enter(panic=False)
    one.exit(5.0)
    with pytest.raises(Refused, match="told to exit"):
        one.lift()


def test_a_fence_that_comes_while_loading_stands_afterwards() -> None:
    one = gate(loaded=False)
    one.fence()
    one.loaded = True
    assert one.closed_by == "fenced"


def test_an_exit_may_come_sooner_than_said_and_never_later() -> None:
    one = gate()
    one.exit(10.0)
    one.exit(20.0)
    assert one.exit_at == 10.0
    one.exit(5.0)
    assert one.exit_at == 5.0


def test_open_requests_are_counted() -> None:
    one = gate()
    one.enter(panic=False)
    assert one.open_requests == 1
    one.leave()
    assert one.open_requests == 0
