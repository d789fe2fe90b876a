"""The system's programs that the helper runs: fixed paths, argument lists, a minimal environment, a time limit each."""

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/"}
REAP_S = 2.0  # after SIGKILL; a process that the kernel keeps is left alone
MOST_WORDS = 400


class Programs(msgspec.Struct, frozen=True, kw_only=True):
    """Where they are. None of them is looked up on a path that a caller could set."""

    nvidia_smi: Path = Path("/usr/bin/nvidia-smi")
    bug_report: Path = Path("/usr/bin/nvidia-bug-report.sh")
    prlimit: Path = Path("/usr/bin/prlimit")
    systemctl: Path = Path("/usr/bin/systemctl")
    systemd_run: Path = Path("/usr/bin/systemd-run")
    journalctl: Path = Path("/usr/bin/journalctl")
    busctl: Path = Path("/usr/bin/busctl")


class Ran(msgspec.Struct, frozen=True):
    """How a program ended; ``code`` None: it was cut off."""

    code: int | None
    output: str

    @property
    def last_words(self) -> str:
        """The last line that says something, shortened."""
        lines = self.output.strip().splitlines()
        return lines[-1].strip()[:MOST_WORDS] if lines else "it said nothing"


def run(program: Path, arguments: Sequence[str], limit_s: float) -> Ran:
    """Run it as a process group of its own, killed after ``limit_s``. Raises OSError if it cannot be started."""
    with subprocess.Popen(
        [str(program), *arguments],
        env=ENVIRONMENT,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            return Ran(None, _kill(process))
    return Ran(process.returncode, output.decode(errors="replace"))


def _kill(process: "subprocess.Popen[bytes]") -> str:
    """End the whole group and do not wait for what the kernel keeps."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    try:
        output, _ = process.communicate(timeout=REAP_S)
    except subprocess.TimeoutExpired:
        process.returncode = -signal.SIGKILL  # so that leaving the block does not wait for ever
        return ""
    return output.decode(errors="replace")
