import struct
import threading
from pathlib import Path

import pytest

from engine.pulse import Pulse, StepTimes
from vocab.beat import SIZE, Beat, unpack
from vocab.errors import ConfigError


def test_a_beat_is_what_was_read(tmp_path: Path) -> None:
    beat = Beat(pid=7, ready=True, step=3, running=2, kv_ratio=0.5)
    pulse = Pulse(tmp_path / "deep" / "beat", lambda: beat)
    pulse.write()
    raw = (tmp_path / "deep" / "beat").read_bytes()
    assert len(raw) == SIZE
    assert unpack(raw) == beat


def test_the_lock_number_grows_by_two_and_is_even_at_rest(tmp_path: Path) -> None:
    pulse = Pulse(tmp_path / "beat", lambda: Beat(pid=1))
    numbers = []
    for _ in range(3):
        pulse.write()
        numbers.append(struct.unpack_from("<I", (tmp_path / "beat").read_bytes(), 4)[0])
    assert numbers == [2, 4, 6]


def test_the_pulse_goes_on_by_itself_until_it_is_stopped(tmp_path: Path) -> None:
    enough = threading.Event()
    reads = []

    def read() -> Beat:
        reads.append(1)
        if len(reads) >= 4:
            enough.set()
        return Beat(pid=1, step=len(reads))

    pulse = Pulse(tmp_path / "beat", read)
    pulse.start()
    assert enough.wait(60)
    pulse.stop()
    last = unpack((tmp_path / "beat").read_bytes())
    assert last is not None
    assert last.step == len(reads)


def test_a_reader_of_the_last_life_keeps_its_map(tmp_path: Path) -> None:
    Pulse(tmp_path / "beat", lambda: Beat(pid=1)).write()
    Pulse(tmp_path / "beat", lambda: Beat(pid=2))
    found = unpack((tmp_path / "beat").read_bytes())
    assert found is not None
    assert found.pid == 1


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="--beat"):
        Pulse(tmp_path / "file" / "beat", lambda: Beat(pid=1))


def test_the_quantile_of_few_steps_is_the_longest() -> None:
    times = StepTimes()
    for duration in (5, 9, 7):
        times.add(duration)
    assert (times.count, times.p999_ns) == (3, 9)


def test_one_slow_step_in_thousands_does_not_stay_the_measure() -> None:
    times = StepTimes()
    times.add(1_000)
    for _ in range(5_000):
        times.add(10)
    assert times.p999_ns == 10
