"""Folds and their shelf: whatever is asked of the shelf, it answers as a look at all folds would."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from agent.judge import Judge
from agent.judge.fold import REVISION_S, SEPARATOR, WINDOW_S
from agent.judge.folds import MOST_APART, Folds
from tests.agent.made import NODE, events, fallen, inventory, sample
from vocab.events import Event, Recovery, Scope, Severity, Source
from vocab.messages import ClearedItem


def made(code="xid:13", gpu="GPU-0", name="", boot_id="b1"):
    return Event(
        id=f"{gpu} {code} {name}",
        at=None,
        node="n",
        boot_id=boot_id,
        gpu=gpu,
        code=code,
        severity=Severity.WARNING,
        recovery=Recovery.NONE,
        scope=Scope.GPU,
        source=Source.KERNEL,
    )


def key_of(event, name="", injected=""):
    return SEPARATOR.join((event.gpu, event.code, name, injected))


moves = st.lists(
    st.tuples(
        st.sampled_from(["GPU-0", "GPU-1"]),
        st.sampled_from(["xid:13", "xid:45"]),
        st.sampled_from(["a", "b", ""]),
        st.sampled_from(["b1", "b1", "b2"]),
        st.sampled_from([0.0, 0.5, 5.0, 10.0, 61.0, 200.0]),
        st.booleans(),
    ),
    max_size=40,
)


@given(moves)
def test_deadline_is_that_of_the_first_fold_with_something_to_send(steps):
    folds, now = Folds(), 0.0
    for gpu, code, name, boot, wait, at_once in steps:
        now += wait
        event = made(code, gpu, name, boot)
        folds.replaced(key_of(event, name), event, now)
        folds.add(key_of(event, name), event, now, at_once=at_once)
        assert folds.next_deadline() == min((f.due for f in folds.open.values() if f.dirty), default=None)


@given(moves)
def test_after_a_tick_nothing_is_due_and_nothing_is_over(steps):
    folds, now = Folds(), 0.0
    for gpu, code, name, boot, wait, at_once in steps:
        event = made(code, gpu, name, boot)
        folds.add(key_of(event, name), event, now, at_once=at_once)
        now += wait
        folds.tick(now)
        assert all(fold.ends >= now for fold in folds.open.values())
        assert all(fold.due > now for fold in folds.open.values() if fold.dirty)


@given(moves)
def test_folds_of_codes_are_those_of_these_codes(steps):
    folds, now = Folds(), 0.0
    for gpu, code, name, boot, wait, _ in steps:
        now += wait
        event = made(code, gpu, name, boot)
        folds.tick(now)
        folds.add(key_of(event, name), event, now, at_once=False)
        found = {key for key, _ in folds.of_codes(["xid:13", "xid:79"])}
        assert found == {key for key, fold in folds.open.items() if fold.event.code == "xid:13"}


def test_a_fold_that_grew_is_kept_and_counts_on():
    folds, event = Folds(), made()
    folds.add(key_of(event), event, 0.0, at_once=False)
    folds.add(key_of(event), event, WINDOW_S - 1, at_once=False)
    assert [sent.count for sent in folds.tick(WINDOW_S + 1)] == []  # it was sent as it grew
    assert folds.add(key_of(event), event, WINDOW_S + 2, at_once=False) is None
    assert [sent.count for sent in folds.tick(WINDOW_S + 2 + REVISION_S)] == [3]


def test_a_harsher_repeat_brings_its_own_words():
    folds = Folds()
    mild = msgspec.structs.replace(made(), fields={"fatal": False, "unit": "A"})
    bad = msgspec.structs.replace(made(), severity=Severity.ERROR, fields={"fatal": True})
    folds.add(key_of(mild), mild, 0.0, at_once=False)
    for event in (bad, mild):
        folds.add(key_of(mild), event, 1.0, at_once=True)
    assert folds.open[key_of(mild)].event.fields == {"fatal": True, "unit": "A"}


def test_folds_beyond_the_limit_go_into_the_last_of_their_subject_and_code():
    folds = Folds()
    for number in range(MOST_APART):
        for event in (made(), made("xid:45"), made(gpu="GPU-1")):
            folds.add(key_of(event, str(number)), event, 0.0, at_once=False)
    last = key_of(made(), str(MOST_APART - 1))
    assert folds.crowded(key_of(made(), "new")) == last
    assert folds.crowded(key_of(made(), "new", "injected")) is None
    assert folds.crowded(key_of(made("xid:31"), "new")) is None


def test_a_cause_and_a_cleared_condition_name_an_event_that_was_sent():
    judge, items = Judge(NODE), []
    items += judge.observe(inventory(), 0.0)
    for at in (1.0, 2.0, 3.0):
        items += judge.observe(fallen(at), at)
    items += judge.observe(sample(100.0, error="GPU_IS_LOST"), 100.0)
    items += judge.tick(100.0)
    items += judge.observe(inventory(200.0, boot_id="boot-2"), 200.0)
    sent = {event.id for event in events(items)}
    assert {event.cause for event in events(items)} - {None} <= sent
    assert {item.cleared.event for item in items if isinstance(item, ClearedItem)} <= sent
    assert any(isinstance(item, ClearedItem) for item in items)
