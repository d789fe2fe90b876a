"""The virtual node's file: identity, survival, and its kernel log."""

from pathlib import Path

import pytest

from agent.virtual import layout
from agent.virtual.state import DAY_S, VirtualState
from vocab.clock import VirtualClock
from vocab.errors import ConfigError, InputError


@pytest.fixture
def state(tmp_path: Path) -> VirtualState:
    return VirtualState.create(tmp_path / "virtual.state", "node-a", clock=VirtualClock(1_000_000.0))


def test_nodes_of_different_names_share_no_uuid_and_no_serial(tmp_path: Path) -> None:
    nodes = [VirtualState.create(tmp_path / name, name) for name in ("node-a", "node-b")]
    uuids = {gpu.uuid for node in nodes for gpu in node.gpus}
    serials = {gpu.serial for node in nodes for gpu in node.gpus}
    assert len(uuids) == len(serials) == 16


def test_a_node_of_the_same_name_has_the_same_gpus_again(tmp_path: Path) -> None:
    first, second = (VirtualState.create(tmp_path / name, "node-a") for name in ("one", "two"))
    assert [gpu.uuid for gpu in first.gpus] == [gpu.uuid for gpu in second.gpus]
    assert first.boot_id != second.boot_id


def test_state_survives_its_process_and_is_opened_as_it_was(state: VirtualState) -> None:
    state.gpus[2].remap_pending = 1
    path, boot = state.path, state.boot_id
    state.close()
    again = VirtualState.open(path)
    assert (again.node, again.boot_id, again.gpus[2].remap_pending) == ("node-a", boot, 1)


def test_a_new_node_has_been_up_for_a_day(state: VirtualState) -> None:
    assert state.uptime_s() == DAY_S
    assert state.boot_at == 1_000_000.0 - DAY_S


def test_a_file_of_another_layout_is_refused_with_the_next_step(state: VirtualState) -> None:
    state.block.version = layout.VERSION + 1
    with pytest.raises(InputError, match=rf"layout {layout.VERSION + 1}.*needs {layout.VERSION}.*remove the file"):
        VirtualState.open(state.path)


@pytest.mark.parametrize("content", [b"", b"something else", bytes(layout.SIZE)])
def test_a_file_that_is_no_virtual_node_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "virtual.state"
    path.write_bytes(content)
    with pytest.raises(InputError, match="not the state of a virtual node"):
        VirtualState.open(path)


def test_an_absent_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"virtual\.state: cannot open"):
        VirtualState.open(tmp_path / "virtual.state")


@pytest.mark.parametrize("shape", ["9xH100", "0xH100", "8xH999", "H100", "8"])
def test_a_shape_that_does_not_exist_is_refused(tmp_path: Path, shape: str) -> None:
    with pytest.raises(ConfigError, match=shape):
        VirtualState.create(tmp_path / "virtual.state", "node-a", shape)
    assert not (tmp_path / "virtual.state").exists()


def test_a_gpu_that_does_not_exist_is_refused(state: VirtualState) -> None:
    with pytest.raises(InputError, match="8 is not a GPU of node-a; it has 0 to 7"):
        state.gpu(8)


def test_records_have_the_form_of_dev_kmsg(state: VirtualState) -> None:
    with state.changing():
        sequence = state.log("NVRM: something", level=4)
        program = state.log("NVRM: Xid, says a program", facility=1)
    assert state.read_log(sequence) == b"4,1,86400000000,-;NVRM: something\n"
    assert state.read_log(program) == b"11,2,86400000000,-;NVRM: Xid, says a program\n"


def test_control_characters_are_escaped_as_the_kernel_does(state: VirtualState) -> None:
    sequence = state.log("two\nlines \\ and more")
    assert state.read_log(sequence) == b"3,1,86400000000,-;two\\x0alines \\x5c and more\n"


def test_a_text_that_is_too_long_is_cut_and_stays_one_record(state: VirtualState) -> None:
    raw = state.read_log(state.log("x" * 5000))
    assert raw is not None
    assert len(raw) == layout.LOG_TEXT - 1
    assert raw.endswith(b"x\n")


def test_an_overwritten_record_is_not_given_for_another(state: VirtualState) -> None:
    for _ in range(layout.LOG_SLOTS):
        state.log("again")
    assert state.read_log(0) is None
    assert state.read_log(layout.LOG_SLOTS) is not None
    assert state.read_log(layout.LOG_SLOTS + 1) is None
