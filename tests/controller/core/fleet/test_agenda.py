"""The agenda: what is due, in order, once; what follows something is looked at when that is over, and no sooner."""

from hypothesis import given
from hypothesis import strategies as st

from controller.core.fleet.agenda import AT_ONCE, NEVER, Agenda
from controller.core.fork import fork
from vocab.lines import Subject

A, B, C = (Subject(node=name) for name in "abc")


class Last:
    """Something that is over ten seconds after it was last heard."""

    def __init__(self, at: float) -> None:
        self.at = at

    def over(self) -> float:
        return self.at + 10.0


def test_what_is_due_is_told_once_and_in_order() -> None:
    agenda = Agenda()
    for at, subject in ((3.0, A), (1.0, B), (3.0, C), (1.0, B), (NEVER, A)):
        agenda.remind(at, subject)
    assert agenda.next() == 1.0
    assert agenda.take(0.5) == []
    assert agenda.take(3.0) == [B, A, C]
    assert agenda.next() is None


def test_a_watch_fires_when_what_it_follows_is_over_however_often_it_was_put_off() -> None:
    agenda, it = Agenda(), Last(0.0)
    agenda.watch(A, it.over)
    it.at = 5.0
    assert agenda.take(12.0) == []
    assert agenda.next() == 15.0
    assert agenda.take(15.0) == [A]
    assert agenda.next() is None
    agenda.watch(A, it.over)
    assert agenda.next() == 15.0


def test_a_watch_that_has_become_earlier_fires_once() -> None:
    agenda, it = Agenda(), Last(20.0)
    agenda.watch(A, it.over)
    it.at = 0.0
    agenda.watch(A, it.over)
    assert agenda.take(40.0) == [A]
    assert agenda.next() is None


def test_a_watch_that_never_ends_is_forgotten() -> None:
    agenda, it = Agenda(), Last(0.0)
    agenda.watch(A, it.over)
    it.at = NEVER
    assert agenda.next() is None
    it.at = 1.0
    agenda.watch(A, it.over)
    assert agenda.next() == 11.0


def test_of_very_many_that_have_moved_one_question_puts_off_some_and_none_fires_too_early() -> None:
    agenda = Agenda()
    them = {Subject(node=str(number)): Last(0.0) for number in range(3 * AT_ONCE)}
    for subject, it in them.items():
        agenda.watch(subject, it.over)
        it.at = 20.0
    assert agenda.next() == 10.0  # too early, and true of those that were not looked at
    assert agenda.take(29.0) == []
    assert agenda.next() == 30.0
    assert set(agenda.take(30.0)) == set(them)


def test_a_copy_has_deadlines_of_its_own() -> None:
    agenda, it = Agenda(), Last(0.0)
    agenda.watch(A, it.over)
    agenda.remind(3.0, B)
    other = fork(agenda)
    it.at = 50.0
    assert other.take(20.0) == [B, A]
    assert agenda.take(20.0) == [B]


@given(st.lists(st.tuples(st.integers(0, 2), st.floats(0.0, 30.0), st.floats(0.0, 5.0))))
def test_each_watch_fires_at_the_first_look_after_its_end(heard: list[tuple[int, float, float]]) -> None:
    agenda, things, now = Agenda(), [Last(0.0) for _ in range(3)], 0.0
    subjects = (A, B, C)
    for number, ahead, passed in heard:
        now += passed
        over = {subjects[n] for n, each in enumerate(things) if each.over() <= now}
        found = agenda.take(now)
        assert {each for each in found if each in agenda._watches} == set()
        assert set(found) <= over
        things[number].at = now + ahead - 10.0
        agenda.watch(subjects[number], things[number].over)
        assert agenda.next() == min(entry.due() for entry in agenda._watches.values() if entry.due is not None)
