from hypothesis import given
from hypothesis import strategies as st

from engine.gateway.relay import END, MAX_EVENT_BYTES, Events


@given(st.lists(st.binary(max_size=20) | st.sampled_from([b"\n", b"\n\n", b"data: x\n\n"]), max_size=20))
def test_nothing_is_lost_added_or_torn(chunks: list[bytes]) -> None:
    events = Events()
    passed = [events.feed(chunk) for chunk in chunks]
    assert all(part == b"" or part.endswith(END) for part in passed)
    assert b"".join(passed) + events.end() == b"".join(chunks)


def test_an_event_is_passed_on_as_soon_as_it_is_whole() -> None:
    events = Events()
    assert events.feed(b"data: 1\n") == b""
    assert events.feed(b"\ndata: 2") == b"data: 1\n\n"


def test_a_stream_is_complete_once_it_has_said_so() -> None:
    events = Events()
    events.feed(b"data: 1\n\ndata: [DO")
    assert not events.done
    events.feed(b"NE]\n\n")
    assert events.done


def test_an_answer_that_speaks_of_the_end_has_not_ended() -> None:
    events = Events()
    events.feed(b'data: {"text": "a stream ends with data: [DONE]"}\n\n')
    assert not events.done


def test_a_stream_without_events_is_not_kept_for_ever() -> None:
    assert len(Events().feed(b"x" * (MAX_EVENT_BYTES + 1))) == MAX_EVENT_BYTES + 1
