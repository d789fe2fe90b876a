"""A real Slurm for tests: munge, slurmctld and a hundred slurmd on this machine, in one temporary folder.

The nodes are ``n1`` to ``n100``; each believes in eight GPUs, which are empty files. Nothing listens beyond what the
configuration names, and every process is a child of the test.
"""

import getpass
import os
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from tests.ports import free_ports
from tests.programs import need

INSTALL = "apt-get install slurmctld slurmd slurm-client munge"
NODES = 100
UP_S = 90.0  # seconds on a quiet machine; two busy cores take longer

CONFIG = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
CryptoType=crypto/munge
AuthInfo=socket={folder}/munge.socket
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
ReturnToService=1
SlurmctldTimeout=2
SlurmdTimeout=60
MessageTimeout=10
SchedulerParameters=sched_interval=2,bf_interval=2
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmdSpoolDir={folder}/spool/%n
StateSaveLocation={folder}/state
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
PartitionName=batch Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
NODE = (
    "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=2 RealMemory=500 Gres=gpu:8 State=UNKNOWN"
)


class Cluster:
    """A running Slurm; ``conf`` is its SLURM_CONF."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.conf = folder / "slurm.conf"
        self.env = {**os.environ, "SLURM_CONF": str(self.conf), "LC_ALL": "C"}
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """Bring everything up and wait until all nodes are idle."""
        for program in ("munged", "slurmctld", "slurmd", "scontrol", "sinfo", "sbatch"):
            need(program, INSTALL)
        self._write()
        self._spawn(
            "munged", "--foreground", "--force", f"--key-file={self.folder}/munge.key",
            f"--socket={self.folder}/munge.socket", f"--pid-file={self.folder}/munge.pid",
            f"--log-file={self.folder}/munge.log", f"--seed-file={self.folder}/munge.seed",
        )  # fmt: skip
        until((self.folder / "munge.socket").exists, "munged has no socket")
        self.start_slurmctld()
        for number in range(1, NODES + 1):
            self._spawn("slurmd", "-D", "-f", str(self.conf), "-N", f"n{number}", name=f"slurmd-{number}")
        until(lambda: self.states().count("idle") == NODES, "not all nodes are idle")

    def _write(self) -> None:
        host = socket.gethostname().partition(".")[0]
        ports = free_ports(NODES + 1)
        for part in ("spool", "state", "gpus"):
            (self.folder / part).mkdir()
        for gpu in range(8):
            (self.folder / "gpus" / f"nvidia{gpu}").touch()
        lines = [NODE.format(name=f"n{n}", host=host, port=ports[n]) for n in range(1, NODES + 1)]
        head = CONFIG.format(host=host, port=ports[0], user=getpass.getuser(), folder=self.folder)
        self.conf.write_text(head + "\n".join(lines) + "\n")
        (self.folder / "gres.conf").write_text(f"Name=gpu File={self.folder}/gpus/nvidia[0-7]\n")
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)

    def _spawn(self, *words: str, name: str = "") -> None:
        program = need(words[0], INSTALL)
        log = (self.folder / f"{name or words[0]}.out").open("ab")
        self._children[name or words[0]] = subprocess.Popen(
            [program, *words[1:]], env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )

    def start_slurmctld(self) -> None:
        """Bring slurmctld up and wait until it answers."""
        self._spawn("slurmctld", "-D", "-f", str(self.conf))
        until(lambda: self.run("scontrol", "ping", check=False).returncode == 0, "slurmctld does not answer")

    def kill_slurmctld(self) -> None:
        """Kill it as a crash would."""
        child = self._children.pop("slurmctld")
        child.kill()
        child.wait()

    def run(self, *words: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
        """One of Slurm's programs."""
        return subprocess.run(words, env=self.env, capture_output=True, text=True, check=check, timeout=60)

    def states(self) -> list[str]:
        """The state of every node, without marks."""
        return [word.rstrip("*") for word in self.run("sinfo", "-N", "-h", "-o", "%T", check=False).stdout.split()]

    def state(self, node: str) -> tuple[str, str]:
        """State and reason of a node."""
        told = self.run("sinfo", "-n", node, "-N", "-h", "-o", "%T|%E").stdout.strip()
        state, _, reason = told.partition("|")
        return state.rstrip("*"), reason

    def submit(self, node: str, seconds: int = 600) -> str:
        """A job that runs on a node; its id once it runs."""
        told = self.run("sbatch", "--parsable", "-o", "/dev/null", "-w", node, "--wrap", f"sleep {seconds}").stdout
        job = told.strip()
        until(lambda: self.run("squeue", "-h", "-j", job, "-o", "%T").stdout.strip() == "RUNNING", "no job runs")
        return job

    def stop(self) -> None:
        """End all that was started."""
        for child in self._children.values():
            child.kill()
        for child in self._children.values():
            child.wait()


def until(happens: Callable[[], bool], else_: str) -> None:
    """Poll until it happens."""
    end = time.monotonic() + UP_S
    while not happens():
        assert time.monotonic() < end, else_
        time.sleep(0.1)
