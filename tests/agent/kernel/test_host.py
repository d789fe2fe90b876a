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


@pytest.mark.parametrize("name", ["efa 0000:a0:1b.0 rdmap160s27", "efa 0000:a0:1b.0", "infiniband rdmap160s27",
                                  "infiniband efa_0"])  # fmt: skip
@pytest.mark.parametrize(
    ("said", "fields"),
    [
        ("Wait for completion (polling) timeout", {"message": "it answers no commands", "dead": True}),
        ("Admin queue is closed", {"message": "it answers no commands", "dead": True}),
        ("Failed to process command CREATE_CQ (opcode 5) comp_status 3 err -12",
         {"message": "Failed to process command CREATE_CQ (opcode #) comp_status # err -#"}),
    ],
)  # fmt: skip
def test_amazons_adapters_refuse_commands_or_answer_none(name, said, fields):
    (record,) = parse([f"[1.0] {name}: {said}"])
    assert (record.kind, record.reporter, record.fields) == (Kind.NIC, "efa", fields)
    assert record.pci == ("0000:a0:1b" if "0000" in name else None)


@pytest.mark.parametrize("said", ["mlx5_1: Port: 1 Link DOWN", "ens1f0np0: Link down"])
def test_a_port_that_goes_down_is_named(said):
    (record,) = parse([f"[1.0] mlx5_core 0000:5c:00.0 {said}"])
    assert (record.kind, record.pci, record.fields) == (Kind.NIC, "0000:5c:00", {"nic": said.split(":")[0], "state": 0})


@pytest.mark.parametrize(
    "line",
    [
        "[Mar  4 2025 07:10:11] [ERROR] [tid 77] {}",
        "2025-03-04T07:10:11.000000+00:00 n1 nv-fabricmanager[9]: [ERROR] [tid 77] {}",
        "Mar  4 07:10:11 n1 nvidia-imex[12]: [Mar 04 2025 07:10:11] [CRITICAL] [tid 77] {}",
    ],
)
def test_the_own_logs_of_fabric_manager_and_imex_say_themselves_what_is_an_error(line):
    said = "no partition 4 is known to this daemon"
    (record,) = parse([line.format(said)])
    assert (record.kind, record.text, record.fields["partition"]) == (Kind.FABRIC, said, 4)
    (switch,) = parse([line.format("detected NVSwitch fatal error 20009 on NVSwitch pci bus id 00000000:86:00.0")])
    assert switch.fields["sxid"] == 20009
    for word in ("INFO", "WARNING", "DEBUG"):
        assert list(parse([line.format("failed: 0").replace("ERROR", word).replace("CRITICAL", word)])) == []


@pytest.mark.parametrize(
    "text",
    [
        "mlx5_core 0000:5c:00.0 ens1f0np0: Link up",
        "mlx5_core 0000:5c:00.0: mlx5_pcie_event:299:(pid 9): Detected insufficient power on the PCIe slot (27W).",
        "nvidia-modeset: ERROR: GPU:0: Idling display engine timed out: 0x0000c77d:0:0:1133",
        "[drm:nv_drm_atomic_commit [nvidia_drm]] *ERROR* [nvidia-drm] [GPU ID 0x00000100] Flip event timeout on head 0",
        "efa 0000:a0:1b.0: enabling device (0010 -> 0012)",
    ],
)
def test_what_only_sounds_bad_of_displays_slots_and_adapters_is_nothing(text):
    assert list(parse([f"[1.0] {text}"])) == []
