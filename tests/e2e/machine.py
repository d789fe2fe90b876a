"""A whole machine for tests: systemd as process 1 in a container over this machine's own files, which stay as they are.

``systemd-nspawn`` boots it on an overlay whose changes are in memory; it has its own network, devices and users.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

from tests.programs import lacking, need

ROOT = Path(__file__).resolve().parents[2]
UNITS = ROOT / "deploy" / "systemd"
BOOT_S = 60.0
LIMIT_S = 60.0
BUSY = 75  # EX_TEMPFAIL: the script's word for a machine that cannot be made here

# In a mount namespace of its own, so that nothing is left mounted whatever happens. $1: the files that are put over
# this machine's; the rest are more options.
BOOT = f"""
set -e
tree=$1; shift
mount -t tmpfs -o mode=755 tmpfs /mnt || exit {BUSY}
mkdir -p /run/systemd
mount -t tmpfs tmpfs /run/systemd
mkdir /mnt/up /mnt/work /mnt/root
mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/up,workdir=/mnt/work /mnt/root || exit {BUSY}
rm -rf /mnt/root/etc/machine-id /mnt/root/var/log/journal
cp -a "$tree/." /mnt/root/
exec systemd-nspawn --directory=/mnt/root --boot --register=no --keep-unit --private-network --console=pipe \
    --link-journal=no --system-call-filter=bpf --capability=CAP_BPF "$@" -- --unit=basic.target
"""
PYTHON = """#!/bin/sh
export PYTHONPATH=/opt/corral/source:/opt/corral/packages PYTHONDONTWRITEBYTECODE=1 LD_LIBRARY_PATH=/opt/python/lib
exec {python} "$@"
"""


class Machine:
    """A running one. ``pid`` is its process 1, as this machine counts."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def run(self, *words: str, check: bool = True, stdin: str | None = None) -> str:
        """A program as root of the machine; what it prints. It is in no unit, so none of their bounds holds."""
        done = self.ran(*words, stdin=stdin)
        assert not check or done.returncode == 0, f"{' '.join(words)}: {done.stdout}{done.stderr}"
        return done.stdout

    def ran(self, *words: str, stdin: str | None = None) -> "subprocess.CompletedProcess[str]":
        """The same, however it ends."""
        inside = ("nsenter", f"--target={self.pid}", "--all", "--")
        return subprocess.run([*inside, *words], input=stdin, capture_output=True, text=True, timeout=LIMIT_S)

    def write(self, path: str, text: str, mode: str = "644") -> None:
        """A file; one that is there keeps its owner."""
        self.run("sh", "-c", 'cat > "$1" && chmod "$2" "$1"', "sh", path, mode, stdin=text)

    def read(self, path: str) -> str | None:
        """A file's text; None if there is none."""
        done = self.ran("cat", path)
        return done.stdout if done.returncode == 0 else None

    def show(self, unit: str, name: str) -> str:
        """A property of a unit."""
        return self.run("systemctl", "show", f"--property={name}", "--value", unit).strip()

    def journal(self, unit: str) -> str:
        """What a unit has written."""
        return self.run("journalctl", "--no-pager", "--output=cat", f"--unit={unit}")


def packaged(tree: Path) -> None:
    """Corral as docs/install.md puts it there, from this source tree and with this Python's packages."""
    for folder in ("etc/systemd/system", "usr/lib/sysusers.d", "usr/lib/tmpfiles.d", "opt/corral/bin"):
        (tree / folder).mkdir(parents=True)
    for unit in (*UNITS.glob("*.service"), *UNITS.glob("*.socket")):
        shutil.copy(unit, tree / "etc/systemd/system")
    shutil.copy(UNITS / "corral.sysusers.conf", tree / "usr/lib/sysusers.d/corral.conf")
    shutil.copy(UNITS / "corral.tmpfiles.conf", tree / "usr/lib/tmpfiles.d/corral.conf")
    python = tree / "opt/corral/bin/python"
    python.write_text(PYTHON.format(python=f"/opt/python/bin/python3.{sys.version_info.minor}"))
    python.chmod(0o755)
    (tree / "etc/machine-id").write_text("0123456789abcdef0123456789abcdef\n")
    (tree / "etc/systemd/system/systemd-networkd-wait-online.service").symlink_to("/dev/null")
    (tree / "etc/systemd/journald.conf.d").mkdir()
    (tree / "etc/systemd/journald.conf.d/volatile.conf").write_text("[Journal]\nStorage=volatile\n")


@contextlib.contextmanager
def booted(tree: Path) -> Iterator[Machine]:
    """The machine with these files over ours. Skips where it cannot be; in CI that is a failure."""
    need("systemd-nspawn", "apt-get install systemd-container")
    unshare = need("unshare", "apt-get install util-linux")
    if os.geteuid() != 0:
        lacking("only root can boot a machine; run the tests as root")
    binds = (
        f"--bind-ro={ROOT}:/opt/corral/source",
        f"--bind-ro={sysconfig.get_path('purelib')}:/opt/corral/packages",
        f"--bind-ro={sys.base_prefix}:/opt/python",
    )
    log = tree.with_name("boot.log")
    with log.open("wb") as output:
        process = subprocess.Popen(
            [unshare, "--mount", "--propagation=private", "sh", "-c", BOOT, "sh", str(tree), *binds],
            env={**os.environ, "UNIFIED_CGROUP_HIERARCHY": "1"},
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    try:
        yield Machine(_first(process, log))
    finally:
        process.terminate()  # systemd-nspawn ends the machine with all that runs in it
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _first(process: "subprocess.Popen[bytes]", log: Path) -> int:
    """The machine's process 1 once it is up."""
    deadline = time.monotonic() + BOOT_S
    while time.monotonic() < deadline:
        code = process.poll()
        if code is not None:
            lacking(f"no machine can be booted here ({code}): {log.read_text(errors='replace')[-400:]}")
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        for child in children:
            done = subprocess.run(
                ["nsenter", f"--target={child}", "--all", "--", "systemctl", "is-active", "basic.target"],
                capture_output=True, text=True, timeout=LIMIT_S,
            )  # fmt: skip
            if done.stdout.strip() == "active":
                return int(child)
        time.sleep(0.1)
    raise AssertionError(f"the machine did not boot: {log.read_text(errors='replace')[-2000:]}")
