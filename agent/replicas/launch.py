"""How a replica's process is started: its command line, its environment, and the spawn itself.

The process leads its own session, writes to its own log and keeps nothing of the agent's, so that it lives
on when the agent is stopped, killed or upgraded.
"""

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from agent.adapters.adapter import Start
from agent.adapters.engines import adapter
from agent.adapters.group import Group
from agent.replicas.record import Folder
from vocab.messages import ReplicaSpec
from vocab.observations import Member

NICE_ON_CPU = ("nice", "-n", "10")  # on a CPU an engine takes all it gets; the daemons beside it come first
OWN = (
    "NOTIFY_SOCKET",
    "WATCHDOG_USEC",
    "WATCHDOG_PID",
    "LISTEN_FDS",
    "LISTEN_PID",
)  # systemd's, the agent's
HOST = "127.0.0.1"


class Launch(msgspec.Struct, frozen=True):
    """All that a spawn needs."""

    argv: tuple[str, ...]
    env: dict[str, str]
    log: Path


Spawn = Callable[[Launch], int]  # starts the process detached and gives its pid; raises OSError


def command(
    spec: ReplicaSpec,
    folder: Folder,
    port: int,
    program: Sequence[str],
    *,
    cpu: bool,
    group: Group | None = None,
) -> tuple[str, ...]:
    """The command line of a replica. Raises ConfigError for an engine that this agent cannot start."""
    start = Start(spec=spec, port=port, beat=str(folder.beat), cpu=cpu, program=tuple(program), group=group)
    return (*(NICE_ON_CPU if cpu else ()), *adapter(spec.engine).argv(start))


def environment(
    spec: ReplicaSpec,
    inherited: Mapping[str, str],
    marks: Mapping[str, str],
    *,
    cpu: bool,
    group: Group | None = None,
) -> dict[str, str]:
    """The environment of a replica: the agent's, with exactly its GPUs visible and marked as ours."""
    env = {key: text for key, text in inherited.items() if key not in OWN}
    env |= marks
    env |= group.environment if group is not None else {}
    env["CUDA_VISIBLE_DEVICES"] = "" if cpu else ",".join(map(visible, spec.members))
    env["PYTHONUNBUFFERED"] = "1"
    if cpu:
        env["OMP_NUM_THREADS"] = "1"
    return env


def visible(member: Member) -> str:
    """A member's device in the words of CUDA_VISIBLE_DEVICES."""
    mig = member.mig
    return member.gpu if mig is None or mig.ci is None else f"MIG-{member.gpu}/{mig.gi}/{mig.ci}"


def spawn_detached(launch: Launch) -> int:
    """Start the process in a session of its own, output to its log; its pid. Raises OSError."""
    program = shutil.which(launch.argv[0], path=launch.env.get("PATH"))
    if program is None:
        raise FileNotFoundError(f"{launch.argv[0]} is not on PATH")
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    return os.posix_spawn(
        program,
        launch.argv,
        launch.env,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(launch.log), append, 0o640),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
        setsigmask=[],
    )
