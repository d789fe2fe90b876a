"""A real node: systemd, logind and NVIDIA's own programs, each under a time limit."""

import os
from pathlib import Path

from agent.roothelper import devices, logind
from agent.roothelper.programs import Programs, run
from agent.roothelper.requests import AnyReply, Denied, Done, Failed, Holder, Piece

SERVICE_S = 60.0  # systemd's own limit for a stop is 90 s; a service that needs longer is stuck
RESET_S = 90.0  # one board takes seconds, eight behind their switches half a minute
LOOK_S = 5.0
KEPT_REPORTS = 20
MOST_REPORT = 256 * 2**20  # of any file that the report writes; before it is packed it has a few dozen MiB
PIECE = 512 * 1024  # of a report, as one reply
REBOOT_S = 20.0  # systemctl only hands the wish over
NOT_HERE = ("not supported", "not available", "insufficient permissions", "unable to determine")  # nvidia-smi's words


class RealMachine:
    """``proc`` is /proc and ``evidence_dir`` where bug reports go."""

    def __init__(self, evidence_dir: Path, programs: Programs | None = None, proc: Path = Path("/proc")) -> None:
        self._evidence_dir = evidence_dir
        self._programs = programs or Programs()
        self._proc = proc

    @property
    def verbs(self) -> tuple[str, ...]:
        """What there is a program for."""
        programs = self._programs
        means = {
            "reset": programs.nvidia_smi,
            "reboot": programs.systemctl,
            "services": programs.systemctl,
            "collect": programs.bug_report,
        }
        return tuple(verb for verb, program in means.items() if os.access(program, os.X_OK))

    def holders(self, gpus: tuple[str, ...]) -> tuple[Holder, ...]:
        """Every process that has one of these GPUs open. Raises InputError for a GPU that is not here."""
        known = devices.nodes(self._proc)
        return devices.holders(self._proc, {uuid: devices.node_of(uuid, known) for uuid in gpus})

    def gpus(self) -> tuple[str, ...]:
        """Those that the driver has."""
        return tuple(devices.nodes(self._proc))

    def is_active(self, unit: str) -> bool:
        """As systemd says; a unit that is not installed does not run."""
        try:
            return run(self._programs.systemctl, ("is-active", "--quiet", "--", unit), SERVICE_S).code == 0
        except OSError:
            return False

    def stop(self, unit: str) -> AnyReply:
        """Stop a service and wait until it has stopped."""
        return self._systemctl("stop", unit)

    def start(self, unit: str) -> AnyReply:
        """Start a service and wait until it runs."""
        return self._systemctl("start", unit)

    def _systemctl(self, verb: str, unit: str) -> AnyReply:
        ran = run(self._programs.systemctl, (verb, "--no-ask-password", "--", unit), SERVICE_S)
        if ran.code == 0:
            return Done()
        why = ran.last_words if ran.code is not None else f"not within {SERVICE_S:.0f} s"
        return Failed(why=f"systemctl {verb} {unit}: {why}")

    def main_pid(self, unit: str) -> int:
        """The main process of a service; 0 if it does not run."""
        try:
            ran = run(self._programs.systemctl, ("show", "--property=MainPID", "--value", "--", unit), LOOK_S)
        except OSError:
            return 0
        word = ran.output.strip()
        return int(word) if ran.code == 0 and word.isdecimal() else 0

    def users(self) -> tuple[str, ...] | None:
        """Who is logged in."""
        return logind.users(self._programs.busctl)

    def inhibitors(self) -> tuple[str, ...] | None:
        """What blocks a shutdown."""
        return logind.inhibitors(self._programs.busctl)

    def collect(self, order: str, limit_s: float) -> AnyReply:
        """NVIDIA's bug report, in a file named after the order."""
        if not os.access(self._programs.bug_report, os.X_OK):
            return Denied(why=f"{self._programs.bug_report} is not installed", impossible=True)
        self._evidence_dir.mkdir(parents=True, exist_ok=True)
        for old in sorted(self._evidence_dir.iterdir(), key=lambda file: file.stat().st_mtime)[: -KEPT_REPORTS + 1]:
            old.unlink()
        path = self._report(order)
        words = (
            f"--fsize={MOST_REPORT}",
            "--",
            str(self._programs.bug_report),
            "--output-file",
            str(path.with_suffix("")),
        )
        ran = run(self._programs.prlimit, words, limit_s)
        path.with_suffix("").unlink(missing_ok=True)
        if ran.code == 0 and path.exists():
            return Done(path=str(path))
        path.unlink(missing_ok=True)
        if ran.code is None:
            return Failed(why=f"nvidia-bug-report did not end within {limit_s:.0f} s and was killed")
        return Failed(why=f"nvidia-bug-report: {ran.last_words if ran.code else 'it left no report'}")

    def report(self, order: str, offset: int) -> AnyReply:
        """From this byte on, at most ``PIECE`` of it. Raises OSError."""
        try:
            with self._report(order).open("rb") as file:
                total = os.fstat(file.fileno()).st_size
                file.seek(offset)
                return Piece(piece=file.read(PIECE), total=total)
        except FileNotFoundError:
            return Denied(why=f"no bug report was taken for {order}")

    def _report(self, order: str) -> Path:
        return self._evidence_dir / f"nvidia-bug-report-{order}.log.gz"

    def reset(self, gpus: tuple[str, ...]) -> AnyReply:
        """``nvidia-smi --gpu-reset``: the driver chooses the means that the board allows."""
        ran = run(self._programs.nvidia_smi, ("--gpu-reset", "-i", ",".join(gpus)), RESET_S)
        if ran.code == 0:
            return Done()
        if ran.code is None:
            return Failed(why=f"nvidia-smi --gpu-reset did not end within {RESET_S:.0f} s", unseen=True)
        if any(words in ran.output.lower() for words in NOT_HERE):
            return Denied(why=f"nvidia-smi --gpu-reset: {ran.last_words}", impossible=True)
        return Failed(why=f"nvidia-smi --gpu-reset: {ran.last_words}")

    def reboot(self) -> AnyReply:
        """Hand the wish to systemd, which asks nobody any more: inhibitors were looked at before."""
        ran = run(self._programs.systemctl, ("reboot", "--no-wall"), REBOOT_S)
        return Done() if ran.code == 0 else Failed(why=f"systemctl reboot: {ran.last_words}")
