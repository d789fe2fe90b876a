"""The call table that two processes share."""

from pathlib import Path

import pytest

from agent.calls import CallTable
from vocab.errors import SourceDown


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "calls"


def test_a_call_under_way_is_seen_through_another_mapping(path: Path) -> None:
    written, read = CallTable.create(path, 3), CallTable.open(path)
    slot = written.slot(1, "GPU-1")
    slot.begin("nvmlDeviceGetPowerUsage", allowed_s=2.0)
    (found,) = read.all_under_way()
    assert found[0] == 1
    assert (found[1].gpu, found[1].call, found[1].allowed_s) == ("GPU-1", "nvmlDeviceGetPowerUsage", 2.0)


def test_a_call_that_came_back_is_gone_and_counted(path: Path) -> None:
    table = CallTable.create(path, 1)
    slot = table.slot(0)
    for _ in range(3):
        slot.begin("nvmlInit")
        slot.end()
    assert table.all_under_way() == []
    assert table.calls(0) == 3


def test_a_slot_without_a_gpu_is_node_wide(path: Path) -> None:
    table = CallTable.create(path, 1)
    table.slot(0).begin("nvmlInit")
    call = table.under_way(0)
    assert call is not None
    assert call.gpu is None


def test_time_that_a_call_waits_by_intent_is_not_overdue(path: Path) -> None:
    table = CallTable.create(path, 1)
    table.slot(0).begin("nvmlEventSetWait", allowed_s=1.0)
    call = table.under_way(0)
    assert call is not None
    assert call.overdue_s(call.began_ns + 3_000_000_000) == 2.0


def test_a_new_table_leaves_the_old_one_to_whoever_holds_it(path: Path) -> None:
    old = CallTable.create(path, 1)
    old.slot(0).begin("nvmlInit")
    assert CallTable.create(path, 1).all_under_way() == []
    assert len(old.all_under_way()) == 1


@pytest.mark.parametrize("content", [b"", b"x" * 256])
def test_a_file_that_is_no_table_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(SourceDown, match="calls"):
        CallTable.open(path)
