"""A real node's means, with small programs in the place of systemctl, nvidia-smi and busctl, and a made-up /proc."""

import os
import time
from pathlib import Path

import pytest

from agent.roothelper import devices, logind
from agent.roothelper.programs import Programs, run
from agent.roothelper.real import KEPT_REPORTS, PIECE, RealMachine
from agent.roothelper.requests import Denied, Done, Failed
from vocab.errors import InputError

ONE, TWO = "GPU-11111111-aaaa", "GPU-22222222-bbbb"


class Host:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.proc = folder / "proc"
        self.asked = folder / "asked"
        for minor, uuid in enumerate((ONE, TWO)):
            card = self.proc / f"driver/nvidia/gpus/0000:{minor:02x}:00.0"
            card.mkdir(parents=True)
            (card / "information").write_text(
                f"Model: \t\t NVIDIA H100\nGPU UUID: \t {uuid}\nDevice Minor: \t {minor}\n"
            )
        self.programs = Programs(
            nvidia_smi=folder / "nvidia-smi",
            bug_report=folder / "nvidia-bug-report.sh",
            systemctl=folder / "systemctl",
            busctl=folder / "busctl",
        )

    def program(self, name: str, body: str) -> None:
        path = self.folder / name
        path.write_text(f'#!/bin/sh\necho "{name} $*" >> "{self.asked}"\n{body}\n')
        path.chmod(0o755)

    def process(self, pid: int, name: str, opens: str, cgroup: str = "0::/user.slice\n") -> None:
        folder = self.proc / str(pid)
        (folder / "fd").mkdir(parents=True)
        (folder / "fd" / "7").symlink_to(opens)
        (folder / "comm").write_text(name + "\n")
        (folder / "cgroup").write_text(cgroup)

    @property
    def machine(self) -> RealMachine:
        return RealMachine(self.folder / "evidence", self.programs, self.proc)


@pytest.fixture
def host(tmp_path):
    return Host(tmp_path)


def test_a_node_has_the_means_for_which_there_is_a_program(host):
    assert host.machine.verbs == ()
    host.program("systemctl", "")
    host.program("nvidia-smi", "")
    assert host.machine.verbs == ("reset", "reboot", "services")


def test_who_has_a_gpu_open_is_found_with_its_unit(host):
    host.process(10, "nv-hostengine", "/dev/nvidia0", "0::/system.slice/nvidia-dcgm.service\n")
    host.process(11, "python3", "/dev/nvidia1")
    host.process(12, "cat", "/dev/nvidiactl")
    host.process(13, "sh", "/dev/null")
    [found] = host.machine.holders((ONE,))
    assert (found.pid, found.name, found.unit, found.gpus) == (10, "nv-hostengine", "nvidia-dcgm.service", (ONE,))
    assert [each.pid for each in host.machine.holders((ONE, TWO))] == [10, 11]
    assert [each.unit for each in host.machine.holders((TWO,))] == [None]


@pytest.mark.parametrize(
    ("cgroup", "unit"),
    [
        ("0::/system.slice/corral-agent.service/replicas/chat-0", "corral-agent.service"),
        ("0::/system.slice/system-x.slice/x@1.service", "x@1.service"),
        ("4:devices:/\n1:name=systemd:/system.slice/nvidia-dcgm.service", "nvidia-dcgm.service"),
        ("0::/user.slice/user-9.slice/user@9.service/app.slice/nvidia-dcgm.service", "user@9.service"),
        ("0::/system.slice/docker-ab.scope/system.slice/nvidia-dcgm.service", None),
        ("0::/kubepods.slice/pod.slice/cri-ab.scope", None),
    ],
)
def test_a_unit_of_a_user_or_a_container_is_never_taken_for_one_of_the_system(host, cgroup, unit):
    host.process(10, "python3", "/dev/nvidia0", cgroup + "\n")
    [found] = host.machine.holders((ONE,))
    assert found.unit == unit


def test_a_gpu_that_the_driver_does_not_have_is_refused(host):
    with pytest.raises(InputError, match="is not a GPU"):
        host.machine.holders(("GPU-99999999-cccc",))


def test_a_node_without_a_driver_has_no_gpus(tmp_path):
    assert devices.nodes(tmp_path) == {}


def test_this_very_process_is_found_by_what_it_has_open(tmp_path):
    with (tmp_path / "nvidia0").open("w") as file:
        [found] = devices.holders(Path("/proc"), {ONE: file.name})
    assert found.pid == os.getpid()


def test_a_reset_is_asked_for_by_uuid(host):
    host.program("nvidia-smi", "exit 0")
    assert host.machine.reset((ONE, TWO)) == Done()
    assert host.asked.read_text() == f"nvidia-smi --gpu-reset -i {ONE},{TWO}\n"


def test_a_reset_that_fails_and_one_that_cannot_be_are_told_apart(host):
    host.program("nvidia-smi", "echo 'GPU 00000000:1B:00.0: In use by another client'; exit 3")
    assert host.machine.reset((ONE,)) == Failed(
        why="nvidia-smi --gpu-reset: GPU 00000000:1B:00.0: In use by another client"
    )
    host.program("nvidia-smi", "echo 'Resetting GPU is not supported.'; exit 3")
    reply = host.machine.reset((ONE,))
    assert isinstance(reply, Denied)
    assert reply.impossible


def test_services_are_stopped_and_started_by_name_and_never_asked_for_a_password(host):
    host.program("systemctl", '[ "$1" = start ] && { echo "Unit not found."; exit 5; }; exit 0')
    assert host.machine.stop("nvidia-dcgm.service") == Done()
    assert host.machine.is_active("nvidia-dcgm.service")
    reply = host.machine.start("nvidia-dcgm.service")
    assert isinstance(reply, Failed)
    assert "Unit not found." in reply.why
    assert "systemctl stop --no-ask-password -- nvidia-dcgm.service" in host.asked.read_text()


def test_the_main_process_of_the_agent_is_what_systemd_says(host):
    assert host.machine.main_pid("corral-agent.service") == 0
    host.program("systemctl", "echo 4711")
    assert host.machine.main_pid("corral-agent.service") == 4711
    assert "--property=MainPID --value -- corral-agent.service" in host.asked.read_text()


def test_a_bug_report_that_does_not_end_is_killed_with_all_that_it_started(host):
    host.program("nvidia-bug-report.sh", f'sleep 600 & echo $! > "{host.folder}/child"; wait')
    reply = host.machine.collect("a-1", 0.5)
    assert isinstance(reply, Failed)
    child = int((host.folder / "child").read_text())
    _wait_for_the_end_of(child)


def _wait_for_the_end_of(pid: int, patience_s: float = 60.0) -> None:
    """A killed process runs no more when the kernel next gives it a turn, which may be after kill() has returned."""
    deadline = time.monotonic() + patience_s
    while _is_alive(pid):
        assert time.monotonic() < deadline, f"process {pid} still runs"
        time.sleep(0.01)


def _is_alive(pid: int) -> bool:
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_bug_report_is_named_after_its_order(host):
    host.program("nvidia-bug-report.sh", 'echo report > "$2.gz"')
    assert host.machine.collect("a-1", 5.0) == Done(path=f"{host.folder}/evidence/nvidia-bug-report-a-1.log.gz")


def test_a_bug_report_is_read_in_pieces(host):
    host.program("nvidia-bug-report.sh", 'head -c 700000 /dev/zero > "$2.gz"')
    host.machine.collect("a-1", 5.0)
    first, second = host.machine.report("a-1", 0), host.machine.report("a-1", PIECE)
    assert (len(first.piece), len(second.piece), second.total) == (PIECE, 700_000 - PIECE, 700_000)
    assert isinstance(host.machine.report("a-2", 0), Denied)


def test_a_bug_report_that_grows_without_bound_is_ended_and_not_kept(host):
    host.program("nvidia-bug-report.sh", 'exec truncate --size=3G "$2.gz"')
    reply = host.machine.collect("a-1", 5.0)
    assert isinstance(reply, Failed)
    assert list((host.folder / "evidence").iterdir()) == []


def test_a_tool_that_leaves_no_report_has_failed(host):
    host.program("nvidia-bug-report.sh", "exit 0")
    assert host.machine.collect("a-1", 5.0) == Failed(why="nvidia-bug-report: it left no report")


def test_only_the_newest_bug_reports_are_kept(host):
    host.program("nvidia-bug-report.sh", 'echo x > "$2.gz"')
    for number in range(KEPT_REPORTS + 5):
        host.machine.collect(f"a-{number}", 5.0)
    kept = sorted(path.name for path in (host.folder / "evidence").iterdir())
    assert len(kept) == KEPT_REPORTS
    assert f"nvidia-bug-report-a-{KEPT_REPORTS + 4}.log.gz" in kept


def test_a_node_without_the_tool_says_that_it_never_will(host):
    reply = host.machine.collect("a-1", 5.0)
    assert isinstance(reply, Denied)
    assert reply.impossible


def test_programs_get_a_minimal_environment(host):
    host.program("env", "env")
    names = {line.partition("=")[0] for line in run(host.folder / "env", (), 5.0).output.splitlines()}
    assert names <= {"PATH", "LC_ALL", "HOME", "PWD", "SHLVL", "_", "OLDPWD"}


def test_people_are_told_from_greeters_and_managers(host):
    host.program(
        "busctl",
        'case "$*" in\n'
        '*ListSessions*) echo \'{"type":"a(susso)","data":[[["1",1000,"anna","seat0","/s/1"],'
        '["2",0,"root","","/s/2"]]]}\' ;;\n'
        '*"/s/1"*) echo \'{"type":"s","data":"user"}\' ;;\n'
        '*"/s/2"*) echo \'{"type":"s","data":"manager"}\' ;;\n'
        "esac",
    )
    assert host.machine.users() == ("anna is logged in (session 1)",)


def test_where_logind_cannot_be_asked_nobody_is_not_the_answer(host):
    assert host.machine.users() is None
    host.program("busctl", "echo 'Failed to connect to bus' >&2; exit 1")
    assert host.machine.users() is None
    assert host.machine.inhibitors() is None
    host.program("busctl", "echo '{}'")
    assert host.machine.inhibitors() is None


def test_what_delays_a_shutdown_does_not_forbid_it():
    rows = [
        ["sleep:shutdown", "backup", "a backup runs", "block", 0, 10],
        ["shutdown", "NetworkManager", "needs to turn off networks", "delay", 0, 11],
        ["handle-power-key", "desktop", "asks first", "block", 1000, 12],
    ]
    assert logind.blocking(rows) == ("backup forbids a shutdown: a backup runs",)
