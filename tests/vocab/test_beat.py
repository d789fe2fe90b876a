from hypothesis import given
from hypothesis import strategies as st

from vocab.beat import SIZE, Beat, pack, unpack

COUNT = st.integers(0, 2**63)
SMALL = st.integers(0, 2**32 - 1)


@given(
    st.builds(
        Beat,
        pid=SMALL,
        ready=st.booleans(),
        admitting=st.booleans(),
        draining=st.booleans(),
        step=COUNT,
        tokens=COUNT,
        running=SMALL,
        waiting=SMALL,
        open_requests=SMALL,
        oldest_wait_since_ns=COUNT,
        last_step_ns=COUNT,
        written_ns=COUNT,
        p999_step_ns=COUNT,
        requests_ok=COUNT,
        requests_failed=COUNT,
        requests_timed_out=COUNT,
        kv_ratio=st.floats(0, 1, width=32),
        error_code=st.integers(-(2**31), 2**31 - 1),
        canaries=SMALL,
        wrong_product=st.booleans(),
        wrong_answer=st.booleans(),
        wrong_weights=st.booleans(),
        step_began_ns=COUNT,
        over_floor=st.floats(0, 1e6, width=32),
        over_usual=st.floats(0, 1e6, width=32),
    ),
    st.integers(0, 2**31).map(lambda half: half * 2),
)
def test_a_beat_is_read_as_it_was_written(beat: Beat, seq: int) -> None:
    raw = pack(beat, seq)
    assert len(raw) == SIZE
    assert unpack(raw) == beat


@given(st.binary(max_size=2 * SIZE))
def test_bytes_that_are_no_beat_are_no_beat(raw: bytes) -> None:
    assert raw[:4] == b"CBT1" or unpack(raw) is None


def test_a_beat_under_way_is_not_read() -> None:
    raw = bytearray(pack(Beat(pid=1), 4))
    raw[4] |= 1
    assert unpack(bytes(raw)) is None
