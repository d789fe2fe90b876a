"""Lines of the memory manager, of network adapters and of the fabric manager."""

import pytest

from agent.kernel.parsed import Kind
from agent.kernel.parser import parse

PREFIXES = ["", "[  812.000001] ", "Oct 12 10:00:01 n1 kernel: ", "Oct 12 10:00:01 n1 kernel: [  812.000001] ",
            "2025-10-12T10:00:01+00:00 n1 kernel: ", "4,77,812000001,-;"]  # fmt: skip
CHOSEN = (
    "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/chat,"
    "task_memcg=/chat/r1,task=python3,pid=4242,uid=1000"
)
KILLED = "{}Killed process 4242 (python3) total-vm:99kB, anon-rss:2048kB, file-rss:0kB, shmem-rss:0kB, UID:1000"


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("text", [CHOSEN, KILLED.format("Out of memory: "),
                                  KILLED.format("Memory cgroup out of memory: "), KILLED.format(""),
                                  "Killed process 4242, UID 1000, (python3) total-vm:99kB"])  # fmt: skip
def test_a_process_that_was_killed_for_memory_is_named(prefix, text):
    (record,) = parse([prefix + text])
    assert (record.kind, record.pid, record.name) == (Kind.OOM, 4242, "python3")


@pytest.mark.parametrize("prefix", PREFIXES)
def test_an_adapter_that_refuses_a_command_means_the_same_whoever_asked(prefix):
    lines = [f"{prefix}mlx5_core 0000:2a:00.0: access_reg op 0x{n:x} failed, pid={n}" for n in (4101, 4102)]
    first, second = parse(lines)
    assert (first.kind, first.pci) == (Kind.NIC, "0000:2a:00")
    assert first.fields == second.fields


@pytest.mark.parametrize(
    "line",
    [
        "fabric manager: detected topology mismatch on partition 3",
        "Oct 12 10:00:01 n1 fabric manager: detected topology mismatch on partition 3",
        "Oct 12 10:00:01 n1 nv-fabricmanager[812]: detected topology mismatch on partition 3",
        "2025-10-12T10:00:01.000000+02:00 n1 nv-fabricmanager[9]: detected topology mismatch on partition 3",
        "Oct 12 10:00:01 n1 kernel: nvidia-fabricmanager: detected topology mismatch on partition 3",
    ],
)
def test_what_the_fabric_manager_complains_of_is_read_from_any_log(line):
    (record,) = parse([line])
    assert (record.kind, record.fields["partition"]) == (Kind.FABRIC, 3)


@pytest.mark.parametrize(
    "line",
    [
        "fabric manager: successfully configured partition 3",
        "Oct 12 10:00:01 n1 nv-fabricmanager[812]: detected NVSwitch non-fatal error 12028 on partition 3",
        "Oct 12 10:00:01 n1 sshd[12]: error: fabric manager: failed password",
        "Oct 12 10:00:01 n1 nv-fabricmanager[812]: failed: WARNING Nothing to do [NV_WARN_NOTHING_TO_DO]",
        "mlx5_core 0000:2a:00.0 mlx5_0: Port: 1 Link ACTIVE",
        "mlx5_core 0000:2a:00.0: Port module event: module 0, Cable plugged",
        "python3[77]: Killed process 12 (x)",
    ],
)
def test_other_words_of_theirs_are_none_of_ours(line):
    assert [record for record in parse([line]) if record.kind in {Kind.OOM, Kind.NIC, Kind.FABRIC}] == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0000:d2:00.0: poll_health:825: device's health compromised - reached miss count.", "its firmware has failed"),
        ("0000:d2:00.0: Health issue observed, firmware internal error, severity(3) ERROR:", "its firmware has failed"),
        ("0000:d2:00.0 ens1f0: print_health_info:423: synd 0x8: unrecoverable hardware error.",
         "its firmware has failed"),
        ("0000:d2:00.0: wait_func:1195:(pid 77): ENABLE_HCA(0x104) timeout. Will cause a leak of a command resource",
         "a command ran out of time"),
    ],
)  # fmt: skip
def test_an_adapter_whose_firmware_no_longer_works_says_so_in_several_ways(text, message):
    (record,) = parse([f"[1.0] mlx5_core {text}"])
    assert (record.kind, record.pci) == (Kind.NIC, "0000:d2:00")
    assert record.fields == {"message": message, "dead": True}


def test_a_fabric_manager_that_gives_up_is_heard_without_the_word_error():
    (record,) = parse(["nv-fabricmanager[9]: number of NVSwitches don't match with any supported one, aborting"])
    assert record.kind is Kind.FABRIC


def test_the_line_that_chooses_a_process_is_the_text_until_it_is_killed():
    (record,) = parse([CHOSEN])
    assert record.text == CHOSEN
