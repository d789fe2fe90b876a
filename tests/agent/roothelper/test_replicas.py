"""What the helper starts as a replica, and what a caller that was taken over cannot make it start."""

import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agent.roothelper.config import EngineConfig, ReplicaConfig
from agent.roothelper.duty import Duty
from agent.roothelper.limits import LIMITS, Ledger
from agent.roothelper.replicas import ReplicaDuty
from agent.roothelper.requests import (
    AnyReply,
    Ask,
    ClearReplica,
    Denied,
    Done,
    EndReplica,
    Failed,
    GroupPart,
    Holder,
    ReadReplica,
    Reboot,
    ReplicaRun,
    ResetGpus,
    Slice,
    Started,
    encoded,
    request_of,
)
from agent.roothelper.unit import made_of
from tests.agent.roothelper.machine import FakeMachine
from tests.agent.roothelper.replicas import ALLOWED, ONE, check_unit, proc_of, start
from tests.agent.roothelper.units import FakeUnits
from vocab.clock import VirtualClock
from vocab.errors import InputError

TWO = "GPU-22222222-bbbb"
UNIT = "corral-replica-chat-1.service"


class Place:
    """A helper with replicas, on a /proc of its own."""

    def __init__(self, folder: Path, allowed: ReplicaConfig = ALLOWED) -> None:
        self.units = FakeUnits()
        self.machine = FakeMachine()
        self.clock = VirtualClock(1_000_000.0)
        proc = proc_of(folder, (ONE, TWO), minors=(3, 5))
        caps = folder / "proc/driver/nvidia/capabilities/gpu5/mig/gi1"
        (caps / "ci0").mkdir(parents=True)
        (caps / "access").write_text("DeviceFileMinor: 30\nDeviceFileMode: 292\n")
        (caps / "ci0/access").write_text("DeviceFileMinor: 31\nDeviceFileMode: 292\n")
        ledger = Ledger(folder / "limits.json")
        replicas = ReplicaDuty(self.units, allowed, ledger, self.clock, proc)
        self.duty = Duty(self.machine, (), folder / "PAUSE", ledger, self.clock, replicas)

    def ask(self, request: Any) -> AnyReply:
        return self.duty.perform(request_of(encoded(request)))

    def start(self, **changes: Any) -> AnyReply:
        return self.ask(start(**changes))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def values(place: Place, key: str) -> list[str]:
    found = (each.partition("=") for each in place.units.started[-1].properties)
    return [value for name, _, value in found if name == key]


def test_a_replica_is_a_unit_of_its_own_user_with_exactly_its_gpus(place):
    assert place.start() == Started(pid=1001)
    unit = place.units.started[0]
    assert unit.name == UNIT
    assert values(place, "User") == ["corral-engine"]
    assert values(place, "DevicePolicy") == ["closed"]
    assert values(place, "DeviceAllow") == [
        "/dev/nvidiactl rw", "/dev/nvidia-uvm rw", "/dev/nvidia-uvm-tools rw", "/dev/nvidia3 rw",
    ]  # fmt: skip
    assert values(place, "TimeoutStopSec") == ["130.000s"]
    assert values(place, "ReadWritePaths") == ["/run/corral/replicas/chat-1/beat"]
    assert unit.environment["CUDA_VISIBLE_DEVICES"] == ONE
    assert unit.environment["CORRAL_BEAT"] == "/run/corral/replicas/chat-1/beat"
    assert unit.argv[:3] == (sys.executable, "-m", "engine")
    assert unit.argv[unit.argv.index("--listen") + 1] == "127.0.0.1:7430"


def test_a_slice_of_a_gpu_opens_its_own_capabilities_and_no_others(place):
    place.start(gpus=(TWO,), slices=(Slice(TWO, 1, 0),))
    assert values(place, "DeviceAllow")[3:] == [
        "/dev/nvidia5 rw", "/dev/nvidia-caps/nvidia-cap30 rw", "/dev/nvidia-caps/nvidia-cap31 rw",
    ]  # fmt: skip
    assert place.units.started[0].environment["CUDA_VISIBLE_DEVICES"] == f"MIG-{TWO}/1/0"
    assert isinstance(place.start(gpus=(TWO,), slices=(Slice(TWO, 1, 7),)), Denied)


def test_another_engine_begins_with_the_program_that_root_has_given(place):
    place.start(engine="vllm", options={"max_model_len": 4096, "enforce_eager": True})
    unit = place.units.started[0]
    assert unit.argv[:3] == (sys.executable, "serve", "/models/small")
    assert unit.argv[-3:] == ("--enforce-eager", "--max-model-len", "4096")
    assert unit.environment["HF_HUB_OFFLINE"] == "1"


def test_a_part_of_a_group_starts_only_where_root_allows_groups(tmp_path, place):
    part = GroupPart(rank=1, nodes=2, gpus=4, leader="10.0.0.1", port=29_500)
    refused = place.start(engine="vllm", group=part)
    assert isinstance(refused, Denied)
    assert "may not be a part of a group" in refused.why
    engines = ALLOWED.engines | {"vllm": replace(ALLOWED.engines["vllm"], groups=True)}
    (tmp_path / "other").mkdir()
    other = Place(tmp_path / "other", replace(ALLOWED, engines=engines))
    assert isinstance(other.start(engine="vllm", group=part), Started)
    unit = other.units.started[0]
    assert {"--headless", "--node-rank", "--master-addr"} <= set(unit.argv)
    assert unit.environment["CORRAL_RANK"] == "1"
    with pytest.raises(InputError, match="leader"):
        other.start(engine="vllm", group=replace(part, leader="-x"))


def test_a_command_line_is_started_only_word_for_word_as_root_wrote_it(place):
    words = (sys.executable, "--port", "{port}", "$HOME")
    assert isinstance(place.start(engine="command", options={"command": words}), Started)
    assert place.units.started[0].argv == (sys.executable, "--port", "7430", "$HOME")
    for other in ((*words, "--more"), words[:2], ("sh", "-c", "id"), ()):
        assert isinstance(place.start(replica="x", engine="command", options={"command": other}), Denied)
    assert isinstance(place.start(replica="x", engine="command", options={"command": words, "more": 1}), Denied)
    assert len(place.units.started) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"engine": "sglang"},
        {"engine": "bash"},
        {"model": "/etc"},
        {"model": "/models/../etc/shadow"},
        {"model": "/modelsx/small"},
        {"model": "org/other-model"},
        {"model": "--trust-remote-code"},
        {"model": "/models/a\nb"},
        {"options": {"trust_remote_code": True}},
        {"engine": "vllm", "options": {"trust_remote_code": True}},
        {"engine": "vllm", "options": {"max_model_len": "--trust-remote-code"}},
        {"engine": "vllm", "options": {"max_model_len": ("a", "b")}},
        {"engine": "vllm", "options": {"max_model_len": "1\n2"}},
        {"gpus": ("GPU-33333333-cccc",)},
    ],
)
def test_what_root_has_not_allowed_is_not_started(place, changes):
    assert isinstance(place.start(**changes), Denied)
    assert place.units.started == []
    assert place.units.did == []


@pytest.mark.parametrize(
    "field",
    [
        {"replica": "../x"}, {"replica": "-x"}, {"replica": "a b"}, {"replica": "x@y"}, {"replica": ""},
        {"deployment": "--flag"}, {"port": 80}, {"port": 70000}, {"gpus": ()}, {"gpus": ("0",)}, {"drain_s": -1.0},
        {"program": "/bin/sh"}, {"user": "root"}, {"environment": {"LD_PRELOAD": "/tmp/x"}},
        {"options": {"a b": 1}}, {"options": {"x": {"y": 1}}},
    ],
)  # fmt: skip
def test_what_is_no_request_at_all_is_refused_before_anything_is_looked_at(field):
    line = msgspec.json.encode({**msgspec.json.decode(encoded(start())), **field})
    with pytest.raises(InputError):
        request_of(line)


def test_a_program_that_others_could_change_is_not_started(tmp_path):
    program = tmp_path / "engine"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o777)
    engines = {"torch": EngineConfig(program=(str(program),))}
    place = Place(tmp_path, ReplicaConfig(models=("/models",), engines=engines))
    reply = place.start()
    assert isinstance(reply, Denied)
    assert "writable by nobody else" in reply.why
    program.unlink()
    assert isinstance(place.start(), Denied)
    assert place.units.started == []


def test_a_name_with_a_slash_is_one_unit(place):
    place.start(replica="org/chat-1")
    assert place.units.started[0].name == "corral-replica-org:chat-1.service"
    assert values(place, "ReadWritePaths") == ["/run/corral/replicas/org:chat-1/beat"]


def test_one_that_still_runs_is_told_to_end_and_not_started_twice(place):
    place.start()
    reply = place.start()
    assert isinstance(reply, Denied)
    assert "still runs" in reply.why
    assert place.units.did == [f"SIGTERM main {UNIT}"]
    assert len(place.units.started) == 1


def test_one_that_has_ended_makes_room_for_its_next_life(place):
    place.start()
    place.units.end(UNIT, result="exit-code", code=1)
    assert place.start() == Started(pid=1002)


def test_its_end_can_be_read_until_it_is_forgotten(place):
    place.start()
    assert place.ask(ReadReplica(replica="chat-1")) == ReplicaRun(known=True, runs=True, pid=1001, result="success")
    assert isinstance(place.ask(ClearReplica(replica="chat-1")), Denied)
    place.units.end(UNIT, result="oom-kill", signal=9)
    for _ in range(2):
        run = place.ask(ReadReplica(replica="chat-1"))
        assert isinstance(run, ReplicaRun)
        assert (run.runs, run.result, run.signal, run.log) == (False, "oom-kill", 9, f"last words of {UNIT}\n")
    assert place.ask(ClearReplica(replica="chat-1")) == Done()
    assert place.ask(ReadReplica(replica="chat-1")) == ReplicaRun(known=False)
    assert place.ask(ClearReplica(replica="chat-1")) == Done()


def test_the_main_process_is_asked_first_and_what_it_leaves_is_ended_with_it(place):
    place.start()
    place.ask(EndReplica(replica="chat-1"))
    place.ask(EndReplica(replica="chat-1", kill=True))
    place.units.runs[UNIT] = ReplicaRun(known=True, runs=True, pid=1001, code=1)  # its workers live on
    place.ask(EndReplica(replica="chat-1"))
    assert place.units.did == [f"SIGTERM main {UNIT}", f"SIGKILL all {UNIT}", f"SIGTERM all {UNIT}"]


def test_a_unit_that_is_not_there_needs_no_end(place):
    assert place.ask(EndReplica(replica="chat-1")) == Done()
    assert place.units.did == []


def test_starts_are_counted_and_ends_are_not(place):
    limit = LIMITS["start_replica"]
    for _ in range(limit.most):
        assert isinstance(place.start(), Started)
        place.units.end(UNIT, result="exit-code", code=1)
    refused = place.start()
    assert isinstance(refused, Denied)
    assert "not again for" in refused.why
    assert isinstance(place.start(replica="chat-2"), Started)
    for _ in range(1000):
        assert place.ask(EndReplica(replica="chat-2")) == Done()
    place.clock.advance(limit.within_s)
    assert isinstance(place.start(), Started)


def test_new_names_do_not_pass_by_the_limit_of_the_node(place):
    for number in range(LIMITS["start_replicas"].most):
        assert isinstance(place.start(replica=f"r{number}"), Started)
        place.units.runs.clear()
    assert isinstance(place.start(replica="one-more"), Denied)


def test_no_more_run_at_once_than_root_allows(place):
    for number in range(ALLOWED.most):
        assert isinstance(place.start(replica=f"r{number}"), Started)
    reply = place.start(replica="one-more")
    assert isinstance(reply, Denied)
    assert "replicas.most" in reply.why


def test_a_start_that_fails_leaves_no_unit_behind(place):
    place.units.breaks = "systemd-run: Failed to find executable"
    assert place.start() == Failed(why="systemd-run: Failed to find executable")
    assert place.units.did == [f"clear {UNIT}"]


@given(
    request=st.builds(
        start,
        replica=st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,20}", fullmatch=True),
        engine=st.sampled_from(["torch", "vllm", "sglang", "command"]),
        model=st.one_of(
            st.just("/models/small"), st.text(min_size=1, max_size=40), st.text(max_size=20).map("/models/".__add__)
        ),
        options=st.dictionaries(
            st.sampled_from(["max_running", "max_model_len", "enforce_eager", "trust_remote_code", "command"]),
            st.one_of(
                st.booleans(), st.integers(), st.text(max_size=20), st.lists(st.text(max_size=8), max_size=4).map(tuple)
            ),
            max_size=3,
        ),
    )
)
def test_whatever_is_ordered_what_starts_is_roots_program_within_roots_bounds(request):
    devices = dict.fromkeys(request.gpus, ("/dev/nvidia3",))
    try:
        unit = made_of(request_of(encoded(request)), ALLOWED, devices)
    except InputError:
        return
    check_unit(unit)
    flags = [word for word in unit.argv if word.startswith("--")]
    assert "--trust-remote-code" not in flags
    assert len(set(flags)) == len(flags), "no value was taken for a flag"


def test_a_pause_neither_starts_nor_keeps_a_replica(place, tmp_path):
    """It stops what harms; an agent that recovers goes on."""
    (tmp_path / "PAUSE").touch()
    assert isinstance(place.start(), Started)
    assert place.ask(EndReplica(replica="chat-1")) == Done()


def test_a_helper_without_replicas_says_what_lacks(tmp_path):
    duty = Duty(FakeMachine(), (), tmp_path / "PAUSE", Ledger(tmp_path / "limits"), VirtualClock(1.0))
    reply = duty.perform(start())
    assert isinstance(reply, Denied)
    assert reply.impossible
    assert "[replicas]" in reply.why
    assert "replicas" not in duty.perform(Ask()).verbs


def test_replicas_of_ours_do_not_keep_a_node_up_but_are_in_the_way_of_a_reset(place):
    assert "replicas" in place.ask(Ask()).verbs
    place.machine.held = [Holder(pid=1001, name="python", gpus=("GPU-00000000-0000",), unit=UNIT)]
    assert isinstance(place.ask(ResetGpus(gpus=("GPU-00000000-0000",))), Denied)
    assert place.ask(Reboot()) == Done()
