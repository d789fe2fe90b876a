import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from wire.disk import write_durably


def test_a_file_is_replaced_whole_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "desired.json"
    write_durably(path, b"old")
    write_durably(path, b"new" * 100_000)
    assert path.read_bytes() == b"new" * 100_000
    assert [each.name for each in tmp_path.iterdir()] == ["desired.json"]


def test_a_failed_write_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "desired.json"
    write_durably(path, b"old")
    with pytest.raises(TypeError):
        write_durably(path, "not bytes")  # type: ignore[arg-type]  # the mistake under test
    assert path.read_bytes() == b"old"


@contextmanager
def nearly_full() -> Iterator[None]:
    """Files may take 4096 bytes: the kernel takes a part of a longer write, and refuses the rest only when asked.

    Not a fixture: the limit would still hold when the test runner writes its own report to a file.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_takes_only_a_part_keeps_the_old_file_whole(tmp_path: Path) -> None:
    path = tmp_path / "desired.json"
    write_durably(path, b"old")
    with nearly_full(), pytest.raises(OSError, match="too large"):
        write_durably(path, b"new" * 10_000)
    assert path.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["desired.json"]
