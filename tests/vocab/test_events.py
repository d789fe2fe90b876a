from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vocab.events import Event, Recovery, Severity, epoch_s, event_id, rfc3339
from vocab.observations import AnyObservation, KernelRecord


def test_the_harsher_of_two_advices_is_the_greater_rank() -> None:
    assert max(Recovery, key=lambda recovery: recovery.rank) is Recovery.CONTACT_SUPPORT
    assert Recovery.RESTART_APP.rank < Recovery.DRAIN_AND_RESET.rank < Recovery.RESET_GPU.rank
    assert max(Severity, key=lambda severity: severity.rank) is Severity.CRITICAL


@given(st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)))
def test_times_survive_the_wire_to_the_microsecond(moment: datetime) -> None:
    stamp = rfc3339(moment.timestamp())
    assert stamp.endswith("Z")
    assert abs(epoch_s(stamp) - moment.timestamp()) < 2e-6


def test_a_time_beyond_the_calendar_is_its_end() -> None:
    assert rfc3339(1e300) == rfc3339(1e12) == "9999-12-31T23:59:59.000000Z"
    assert rfc3339(-1e300) == "0001-01-01T00:00:00.000000Z"


def test_the_same_evidence_gives_the_same_id_and_any_difference_another() -> None:
    one = event_id("boot", "GPU-1", "xid:79", "", [12])
    assert one == event_id("boot", "GPU-1", "xid:79", "", [12])
    assert len(one) == 20
    others = {
        event_id("boot2", "GPU-1", "xid:79", "", [12]),
        event_id("boot", "GPU-2", "xid:79", "", [12]),
        event_id("boot", "GPU-1", "xid:7", "9", [12]),
        event_id("boot", "GPU-1", "xid:79", "", [13]),
    }
    assert len(others | {one}) == 5


def test_an_event_needs_its_judgement() -> None:
    with pytest.raises(msgspec.ValidationError, match="severity"):
        msgspec.json.decode(b'{"id":"a","at":null,"node":"n","code":"xid:1"}', type=Event)


def test_an_unknown_key_of_a_recording_is_ignored_and_an_unknown_kind_is_an_error() -> None:
    line = b'{"obs":"kernel","at":1.5,"node":"n","line":"x","colour":"red"}'
    assert msgspec.json.decode(line, type=AnyObservation) == KernelRecord(at=1.5, node="n", line="x")
    with pytest.raises(msgspec.ValidationError, match="obs"):
        msgspec.json.decode(b'{"obs":"aura","at":1}', type=AnyObservation)
