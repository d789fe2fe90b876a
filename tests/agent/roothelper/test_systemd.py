"""The words that systemd's programs are given, and what is read from their answers."""

import stat
from pathlib import Path

import pytest

from agent.roothelper.programs import Programs
from agent.roothelper.requests import Done, Failed, ReplicaRun
from agent.roothelper.systemd import Systemd, run_of, words
from agent.roothelper.unit import Unit

UNIT = Unit(
    name="corral-replica-r1.service",
    description="Corral replica r1",
    argv=("/opt/engine", "--model", "$HOME"),
    environment={"CUDA_VISIBLE_DEVICES": "GPU-1"},
    properties=("User=corral-engine", "DeviceAllow=/dev/nvidia0 rw"),
)


class Host:
    """Programs of systemd that write down what they are asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked = folder / "asked"
        self.systemd = Systemd(
            Programs(
                systemd_run=folder / "systemd-run", systemctl=folder / "systemctl", journalctl=folder / "journalctl"
            )
        )

    def program(self, name: str, script: str) -> None:
        path = self.folder / name
        path.write_text(f'#!/bin/sh\necho {name} "$@" >> "{self.asked}"\n{script}\n')
        path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def host(tmp_path):
    return Host(tmp_path)


def test_a_unit_is_one_call_whose_words_are_never_split_or_filled_in(host):
    assert words(UNIT)[-4:] == ("--", "/opt/engine", "--model", "$$HOME")
    assert "--property=DeviceAllow=/dev/nvidia0 rw" in words(UNIT)
    assert "--setenv=CUDA_VISIBLE_DEVICES=GPU-1" in words(UNIT)
    host.program("systemd-run", "exit 0")
    assert host.systemd.start(UNIT) == Done()
    assert "--unit=corral-replica-r1.service" in host.asked.read_text()


def test_a_start_that_systemd_refuses_says_why(host):
    host.program("systemd-run", "echo 'Failed to find executable /opt/engine' >&2; exit 1")
    assert host.systemd.start(UNIT) == Failed(why="systemd-run: Failed to find executable /opt/engine")


@pytest.mark.parametrize(
    ("told", "run"),
    [
        ("LoadState=not-found", ReplicaRun(known=False)),
        ("LoadState=loaded\nTransient=no\nActiveState=active", ReplicaRun(known=False)),
        (
            (
                "ActiveState=active\nSubState=running\nResult=success\nMainPID=7\nExecMainPID=7\nExecMainCode=0\n"
                "ExecMainStatus=0"
            ),
            ReplicaRun(known=True, runs=True, pid=7, result="success"),
        ),
        (
            (
                "ActiveState=active\nSubState=exited\nResult=success\nMainPID=0\nExecMainPID=7\nExecMainCode=1\n"
                "ExecMainStatus=0"
            ),
            ReplicaRun(known=True, pid=7, result="success", code=0),
        ),
        (
            (
                "ActiveState=failed\nSubState=failed\nResult=oom-kill\nMainPID=0\nExecMainPID=7\nExecMainCode=2\n"
                "ExecMainStatus=9"
            ),
            ReplicaRun(known=True, pid=7, result="oom-kill", signal=9),
        ),
        (
            (
                "ActiveState=failed\nSubState=failed\nResult=core-dump\nMainPID=0\nExecMainPID=7\nExecMainCode=3\n"
                "ExecMainStatus=6"
            ),
            ReplicaRun(known=True, pid=7, result="core-dump", signal=6),
        ),
        (
            (
                "ActiveState=deactivating\nSubState=stop-sigterm\nResult=exit-code\nMainPID=0\nExecMainPID=7\n"
                "ExecMainCode=1\nExecMainStatus=3"
            ),
            ReplicaRun(known=True, runs=True, pid=7, result="exit-code", code=3),
        ),
    ],
)
def test_how_a_unit_stands_and_how_its_process_ended(told, run):
    pairs = dict(line.split("=", 1) for line in told.splitlines())
    assert run_of({"LoadState": "loaded", "Transient": "yes"} | pairs) == run


def test_the_log_is_of_the_last_run_alone(host):
    host.program("systemctl", "echo 0123abcd")
    host.program("journalctl", "echo 'CUDA error: out of memory'")
    assert host.systemd.log("corral-replica-r1.service") == "CUDA error: out of memory\n"
    assert "journalctl --quiet --no-pager --output=cat --lines=200 _SYSTEMD_INVOCATION_ID=0123abcd" in (
        host.asked.read_text()
    )
    host.program("systemctl", "echo")
    assert host.systemd.log("corral-replica-r1.service") == ""


def test_a_systemd_that_cannot_be_asked_is_no_unit_that_is_gone(host):
    host.program("systemctl", "echo 'Failed to connect to bus' >&2; exit 1")
    with pytest.raises(OSError, match="Failed to connect"):
        host.systemd.read("corral-replica-r1.service")
    with pytest.raises(OSError, match="Failed to connect"):
        host.systemd.running("corral-replica-")


def test_a_signal_and_the_end_of_a_unit(host):
    host.program("systemctl", "exit 0")
    host.systemd.signal("corral-replica-r1.service", "SIGTERM", "main")
    host.systemd.clear("corral-replica-r1.service")
    assert host.asked.read_text().splitlines() == [
        "systemctl kill --kill-who=main --signal=SIGTERM -- corral-replica-r1.service",
        "systemctl stop --no-ask-password -- corral-replica-r1.service",
        "systemctl reset-failed -- corral-replica-r1.service",
    ]
