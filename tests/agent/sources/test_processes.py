import pytest

from agent.sources.processes import Processes
from tests.agent.sources.host_tree import process


def looked(processes):
    count, seen = processes.look()
    return count, {one.pid: one.state for one in seen}


def test_a_tool_of_the_driver_that_stays_in_d_hangs(tmp_path):
    process(tmp_path, 7, "nvidia-smi", "D")
    processes = Processes(tmp_path)
    assert looked(processes) == (0, {})
    assert looked(processes) == (1, {7: "D"})


def test_a_process_inside_the_drivers_code_hangs_whatever_its_name_is(tmp_path):
    process(tmp_path, 7, "python3", "D", wchan="os_acquire_mutex")
    process(tmp_path, 8, "python3", "D", wchan="io_schedule")
    process(tmp_path, 9, "python3", "D")
    (tmp_path / "9/stack").write_text("[<0>] down+0x1/0x2\n[<0>] uvm_va_space_mm_shutdown+0x1/0x2 [nvidia_uvm]\n")
    processes = Processes(tmp_path)
    looked(processes)
    assert looked(processes) == (2, {7: "D", 9: "D"})


def test_a_process_that_is_scheduled_meanwhile_does_not_hang(tmp_path):
    process(tmp_path, 7, "nvidia-smi", "D", switches=10)
    processes = Processes(tmp_path)
    looked(processes)
    process(tmp_path, 7, "nvidia-smi", "D", switches=11)
    assert looked(processes) == (0, {})


def test_a_pid_that_another_process_has_meanwhile_does_not_hang(tmp_path):
    process(tmp_path, 7, "nvidia-smi", "D", start=500)
    processes = Processes(tmp_path)
    looked(processes)
    process(tmp_path, 7, "nvidia-smi", "D", start=900)
    assert looked(processes) == (0, {})


def test_threads_of_the_kernel_are_left_out(tmp_path):
    process(tmp_path, 7, "nvidia-modeset/", "D", flags=0x208040)
    processes = Processes(tmp_path)
    looked(processes)
    assert looked(processes) == (0, {})


@pytest.mark.parametrize(("after", "told"), [("S", "S"), ("R", "R"), ("Z", "Z"), (None, "gone")])
def test_the_end_of_a_hang_is_told(tmp_path, after, told):
    process(tmp_path, 7, "nvidia-smi", "D")
    processes = Processes(tmp_path)
    looked(processes)
    looked(processes)
    if after is None:
        (tmp_path / "7/stat").unlink()
    else:
        process(tmp_path, 7, "nvidia-smi", after)
    assert looked(processes) == (0, {7: told})
    assert looked(processes) == (0, {})


def test_one_that_was_scheduled_and_waits_again_no_longer_hangs(tmp_path):
    process(tmp_path, 7, "nvidia-smi", "D", switches=1)
    processes = Processes(tmp_path)
    looked(processes)
    looked(processes)
    process(tmp_path, 7, "nvidia-smi", "D", switches=2)
    assert looked(processes) == (0, {7: "R"})


def test_a_name_may_hold_anything(tmp_path):
    process(tmp_path, 7, "nvidia-) D (x", "D")
    processes = Processes(tmp_path)
    looked(processes)
    _, (seen,) = processes.look()
    assert (seen.name, seen.start_s, seen.parent) == ("nvidia-) D (x", 5.0, 1)


def test_this_machines_own_processes_can_be_read():
    processes = Processes()
    processes.look()
    count, _ = processes.look()
    assert count >= 0
