from hypothesis import given
from hypothesis import strategies as st

from agent.segment import Ack, Entry, Head, Segment, frame, read

RECORDS = [Head(1, 0, 0, None), Entry(((1, b"{}"), (2, b"[]")), b"state"), Ack(2)]
RAW = b"".join(map(frame, RECORDS))


def test_records_come_back_as_they_were():
    assert read(RAW) == (RECORDS, len(RAW))


@given(st.integers(0, len(RAW)))
def test_a_cut_at_any_byte_leaves_the_whole_records_before_it(cut):
    records, good = read(RAW[:cut])
    assert records == RECORDS[: len(records)]
    assert good == sum(len(frame(record)) for record in records) <= cut


@given(st.integers(0, len(RAW) - 1), st.integers(1, 255))
def test_a_flipped_byte_is_never_read_as_a_record(at, flip):
    raw = bytearray(RAW)
    raw[at] ^= flip
    records, _ = read(bytes(raw))
    assert records == RECORDS[: len(records)]
    assert len(records) < len(RECORDS)


@given(st.binary(max_size=200))
def test_any_bytes_can_be_read(raw):
    read(raw)


def test_zeros_behind_the_end_are_no_records():
    assert read(RAW + bytes(64)) == (RECORDS, len(RAW))


def test_opening_cuts_off_what_stands_behind_the_good_bytes(tmp_path):
    path = tmp_path / "1.seg"
    path.write_bytes(RAW + b"torn")
    segment = Segment(path, size=len(RAW))
    segment.open()
    segment.append(frame(Ack(3)))
    segment.close()
    assert read(path.read_bytes())[0] == [*RECORDS, Ack(3)]
