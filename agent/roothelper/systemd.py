"""Transient units by systemd's own programs: argument lists, a time limit each, nothing of a caller's but values."""

from collections.abc import Mapping
from typing import Protocol

from agent.roothelper.programs import Programs, run
from agent.roothelper.requests import AnyReply, Done, Failed, ReplicaRun
from agent.roothelper.unit import Unit

START_S = 20.0  # until its program runs: namespaces and folders; an engine loads its model afterwards
SIGNAL_S = 10.0
LOOK_S = 5.0
STOP_S = 20.0
LOG_LINES = 200
LOG_BYTES = 32_768
PROPERTIES = ("LoadState", "ActiveState", "SubState", "Result", "MainPID", "ExecMainPID", "ExecMainCode",
              "ExecMainStatus", "InvocationID", "Transient")  # fmt: skip
EXITED, KILLED, DUMPED = "1", "2", "3"  # CLD_… of ExecMainCode


class Units(Protocol):
    """The replicas' units of one node. Raises OSError where systemd cannot be asked."""

    def start(self, unit: Unit) -> AnyReply:
        """Start it and wait until its program runs: Done, or Failed with the reason."""
        ...

    def read(self, name: str) -> ReplicaRun:
        """How it stands, without its log."""
        ...

    def log(self, name: str) -> str:
        """The end of what its last run wrote."""
        ...

    def signal(self, name: str, signal: str, whom: str) -> AnyReply:
        """A signal to its ``main`` process or to ``all``."""
        ...

    def clear(self, name: str) -> AnyReply:
        """End what is left of it, and forget it."""
        ...

    def running(self, prefix: str) -> int:
        """How many units of such a name have processes."""
        ...


class Systemd:
    """The system's own service manager."""

    def __init__(self, programs: Programs | None = None) -> None:
        self._programs = programs or Programs()

    def start(self, unit: Unit) -> AnyReply:
        """By ``systemd-run``."""
        ran = run(self._programs.systemd_run, words(unit), START_S)
        if ran.code == 0:
            return Done()
        if ran.code is None:
            return Failed(why=f"systemd did not start {unit.name} within {START_S:.0f} s", unseen=True)
        return Failed(why=f"systemd-run: {ran.last_words}")

    def read(self, name: str) -> ReplicaRun:
        """By ``systemctl show``. A unit that is not transient is none of ours, and unknown."""
        ran = run(self._programs.systemctl, ("show", f"--property={','.join(PROPERTIES)}", "--", name), LOOK_S)
        if ran.code != 0:
            raise OSError(f"systemctl show {name}: {ran.last_words}")
        return run_of(dict(line.split("=", 1) for line in ran.output.splitlines() if "=" in line))

    def log(self, name: str) -> str:
        """Of the invocation that ended last, from the journal."""
        ran = run(self._programs.systemctl, ("show", "--property=InvocationID", "--value", "--", name), LOOK_S)
        invocation = ran.output.strip()
        if ran.code != 0 or not invocation.isalnum():
            return ""
        match = f"_SYSTEMD_INVOCATION_ID={invocation}"
        arguments = ("--quiet", "--no-pager", "--output=cat", f"--lines={LOG_LINES}", match)
        ran = run(self._programs.journalctl, arguments, LOOK_S)
        return ran.output[-LOG_BYTES:] if ran.code == 0 else ""

    def signal(self, name: str, signal: str, whom: str) -> AnyReply:
        """By ``systemctl kill``; --kill-who is understood by old and new ones."""
        return self._systemctl("kill", f"--kill-who={whom}", f"--signal={signal}", "--", name, limit_s=SIGNAL_S)

    def clear(self, name: str) -> AnyReply:
        """``stop`` ends what it left behind, ``reset-failed`` forgets a failure."""
        stopped = self._systemctl("stop", "--no-ask-password", "--", name, limit_s=STOP_S)
        self._systemctl("reset-failed", "--", name, limit_s=SIGNAL_S)
        return stopped

    def running(self, prefix: str) -> int:
        """By ``systemctl list-units``."""
        arguments = ("list-units", "--plain", "--no-legend", "--state=running,start,stop-sigterm", f"{prefix}*.service")
        ran = run(self._programs.systemctl, arguments, LOOK_S)
        if ran.code != 0:
            raise OSError(f"systemctl list-units: {ran.last_words}")
        return len(ran.output.strip().splitlines())

    def _systemctl(self, verb: str, *arguments: str, limit_s: float) -> AnyReply:
        ran = run(self._programs.systemctl, (verb, *arguments), limit_s)
        if ran.code == 0:
            return Done()
        why = ran.last_words if ran.code is not None else f"not within {limit_s:.0f} s"
        return Failed(why=f"systemctl {verb}: {why}")


def words(unit: Unit) -> tuple[str, ...]:
    """The arguments of ``systemd-run``."""
    return (
        "--system",
        "--quiet",
        "--no-ask-password",
        f"--unit={unit.name}",
        f"--description={unit.description}",
        "--service-type=exec",  # so that a program that cannot be run is a start that failed
        *(f"--property={each}" for each in unit.properties),
        *(f"--setenv={name}={value}" for name, value in unit.environment.items()),
        "--",
        *(word.replace("$", "$$") for word in unit.argv),  # systemd fills in variables
    )


def run_of(found: Mapping[str, str]) -> ReplicaRun:
    """What ``systemctl show`` says of a unit."""
    if found.get("LoadState") != "loaded" or found.get("Transient") != "yes":
        return ReplicaRun(known=False)
    runs = found.get("ActiveState") in {"active", "activating", "deactivating"} and found.get("SubState") != "exited"
    how, status = found.get("ExecMainCode"), found.get("ExecMainStatus", "")
    number = int(status) if status.isdecimal() else None
    over = found.get("MainPID") == "0"
    return ReplicaRun(
        known=True,
        runs=runs,
        pid=int(found.get("ExecMainPID") or 0),
        result=found.get("Result", ""),
        code=number if over and how == EXITED else None,
        signal=number if over and how in {KILLED, DUMPED} else None,
    )
