import ctypes
import sys

import pytest

from agent.sources.host_machine import Timex, read_clock, read_machine
from tests.agent.sources.host_tree import machine


def test_memory_uptime_and_the_disk_of_the_state_folder_are_told(tmp_path):
    machine(tmp_path)
    figures = read_machine(tmp_path, tmp_path)
    assert figures["memory_available_bytes"] == 1024 * 1024
    assert figures["memory_total_bytes"] == 2048 * 1024
    assert figures["uptime_s"] == 350.5
    assert 0 < figures["state_available_bytes"] <= figures["state_total_bytes"]


def test_what_the_kernel_does_not_tell_is_absent(tmp_path):
    figures = read_machine(tmp_path, tmp_path / "nothing")
    assert not {"memory_available_bytes", "uptime_s", "state_available_bytes"} & set(figures)


@pytest.mark.skipif(sys.platform != "linux", reason="adjtimex is Linux'")
def test_the_clock_of_this_machine_tells_its_error():
    figures = read_clock()
    assert not figures or (figures["clock_synchronized"] in {0, 1} and figures["clock_max_error_s"] >= 0)


def test_the_kernels_structure_fits():
    assert ctypes.sizeof(Timex) >= 208  # sizeof(struct timex) of 64-bit Linux
    assert (Timex.maxerror.offset, Timex.esterror.offset, Timex.status.offset) == (24, 32, 40)
