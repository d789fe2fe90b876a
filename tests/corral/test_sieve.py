"""The sieve gives exactly the lines that a look at each line would give."""

from hypothesis import given
from hypothesis import strategies as st

from agent.kernel.parser import MARKS, of_interest
from corral.scan.files import MAX_LINE
from corral.scan.sieve import Sieve

pieces = st.sampled_from([*MARKS, '{"MESSAGE":[', "{", "x", " ", "audit: 1", "\r", "é", "\u2028"])
texts = st.lists(st.lists(pieces, max_size=4).map("".join), max_size=12)


def wanted(line):
    return of_interest(line) or (line.startswith("{") and '"MESSAGE":[' in line)


@given(texts)
def test_interesting_lines_are_all_that_hold_a_mark_in_order(lines):
    sieve = Sieve("\n".join(lines))
    assert list(sieve.interesting()) == [line for line in lines if wanted(line)]
    assert sieve.lines == max(len(lines), 1)


@given(texts, st.integers(0, 3))
def test_lines_that_follow_are_the_very_next_and_come_once(lines, after):
    sieve, found = Sieve("\n".join(lines)), []
    for line in sieve.interesting():
        found.append(line)
        found += [more for _ in range(after) if (more := sieve.following()) is not None]
    expected, owed = [], 0
    for line in lines:
        if owed:
            owed -= 1
            expected.append(line)
        elif wanted(line):
            owed = after
            expected.append(line)
    assert found == expected


def test_a_mark_beyond_what_is_kept_of_a_line_does_not_count():
    sieve = Sieve("x" * MAX_LINE + "NVRM: Xid\nNVRM: here")
    assert list(sieve.interesting()) == ["NVRM: here"]


def test_the_lines_of_a_block_may_all_follow():
    sieve = Sieve("a\n\nb")
    assert [sieve.following() for _ in range(4)] == ["a", "", "b", None]
