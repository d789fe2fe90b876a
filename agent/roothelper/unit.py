"""What becomes of a start that was asked for: a systemd unit with its command line, user, devices and bounds. Pure.

The caller names an engine that root's configuration has, a model where models may lie, GPUs, a port, and of the
engine's flags those that an order may set. Program, environment, user, paths and every property are root's: whoever
takes the agent over can start what an operator has allowed and nothing else.
"""

import posixpath
from collections.abc import Mapping
from pathlib import Path

import msgspec

from agent.adapters.adapter import Start
from agent.adapters.command import COMMAND
from agent.adapters.engines import ENGINES
from agent.adapters.group import Group
from agent.adapters.torch import TORCH
from agent.replicas.launch import environment
from agent.replicas.record import Folder, marks, unit_of
from agent.roothelper.config import EngineConfig, ReplicaConfig
from agent.roothelper.requests import Option, StartReplica
from vocab.errors import ConfigError, InputError
from vocab.events import Mig
from vocab.messages import ReplicaSpec
from vocab.observations import Member

HOME = "/var/lib/corral/engine"  # of the replicas' user: caches of compiled kernels and downloaded files
INHERITED = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": HOME}
COMMON_DEVICES = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools")  # no work on any GPU without them
SHUT_PATHS = ("/etc/corral", "/var/lib/corral/agent", "/var/lib/corral/controller", "/var/lib/corral/roothelper")

# As in deploy/systemd/corral-replica@.service, whose comments say why. RemainAfterExit keeps how it ended until it was
# read. MemoryDenyWriteExecute is missing on purpose: kernels compiled at run time need such pages.
BOUNDS = (
    "RemainAfterExit=yes",
    "KillMode=mixed",
    "OOMPolicy=stop",
    "UMask=0027",
    "StateDirectory=corral/engine",
    "StateDirectoryMode=0750",
    "CapabilityBoundingSet=",
    "NoNewPrivileges=yes",
    "PrivateTmp=yes",
    "ProtectSystem=strict",
    "ProtectHome=yes",
    "ProtectProc=invisible",
    "ProtectHostname=yes",
    "ProtectClock=yes",
    "ProtectKernelLogs=yes",
    "ProtectKernelTunables=yes",
    "ProtectKernelModules=yes",
    "ProtectControlGroups=yes",
    "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK",
    "RestrictNamespaces=yes",
    "RestrictRealtime=yes",
    "RestrictSUIDSGID=yes",
    "LockPersonality=yes",
    "SystemCallArchitectures=native",
    "SystemCallFilter=@system-service",
    "SystemCallErrorNumber=EPERM",
    "LimitNOFILE=65536",
    "LimitMEMLOCK=infinity",
    "DevicePolicy=closed",
)


class Unit(msgspec.Struct, frozen=True, kw_only=True):
    """A transient service."""

    name: str
    description: str
    argv: tuple[str, ...]
    environment: dict[str, str]
    properties: tuple[str, ...]


def made_of(request: StartReplica, allowed: ReplicaConfig, devices: Mapping[str, tuple[str, ...]]) -> Unit:
    """The unit for a start; ``devices``: the nodes of each GPU that it names. Raises InputError for what may not be."""
    engine = allowed.engines.get(request.engine)
    if engine is None:
        raise InputError(f"engine: {request.engine} is not one that may be started here ({', '.join(allowed.engines)})")
    if request.group is not None and not engine.groups:
        raise InputError(f"engine: {request.engine} may not be a part of a group over several nodes here (groups)")
    _check_model(request.model, allowed.models)
    _check_options(request, engine)
    spec = _spec(request)
    folder = Folder(allowed.run_dir, request.replica)
    given = INHERITED | engine.environment
    ours = environment(spec, given, marks(request.replica, folder.beat), cpu=False, group=_group(request))
    nodes = (*COMMON_DEVICES, *dict.fromkeys(node for gpu in request.gpus for node in devices[gpu]))
    return Unit(
        name=unit_of(request.replica),
        description=f"Corral replica {request.replica}",
        argv=_argv(request, spec, engine, str(folder.beat)),
        environment=ours,
        properties=(
            *BOUNDS,
            f"User={allowed.user}",
            f"TimeoutStopSec={request.drain_s + request.kill_s:.3f}s",
            f"ReadWritePaths={folder.beat}",
            f"InaccessiblePaths={' '.join(f'-{path}' for path in SHUT_PATHS)}",
            f"SyslogIdentifier={request.replica}",
            *(f"DeviceAllow={node} rw" for node in nodes),
        ),
    )


def _spec(request: StartReplica) -> ReplicaSpec:
    parts = {part.gpu: Mig(part.gi, part.ci) for part in request.slices}
    return ReplicaSpec(
        replica=request.replica,
        deployment=request.deployment,
        members=tuple(
            Member(node="", gpu=gpu, rank=rank, mig=parts.get(gpu))
            for rank, gpu in enumerate(dict.fromkeys(request.gpus))
        ),
        model=request.model,
        engine=request.engine,
        drain_s=request.drain_s,
        kill_s=request.kill_s,
        options=dict(request.options),
    )


def _group(request: StartReplica) -> Group | None:
    part = request.group
    if part is None:
        return None
    return Group(rank=part.rank, nodes=part.nodes, gpus=part.gpus, leader=part.leader, port=part.port)


def _argv(request: StartReplica, spec: ReplicaSpec, engine: EngineConfig, beat: str) -> tuple[str, ...]:
    adapter = ENGINES[request.engine]
    start = Start(spec=spec, port=request.port, beat=beat, cpu=False, program=engine.program, group=_group(request))
    try:
        words = adapter.argv(start)
    except ConfigError as error:
        raise InputError(str(error)) from error
    # Ours begins with the program that it is given; of the others the first word is a name to be looked for on PATH.
    return words if adapter.name in {TORCH.name, COMMAND.name} else (*engine.program, *words[1:])


def _check_model(model: str, allowed: tuple[str, ...]) -> None:
    folders = [Path(each) for each in allowed if each.startswith("/")]
    plain = posixpath.normpath(model) == model and model.isprintable()
    below = plain and model.startswith("/") and any(Path(model).is_relative_to(folder) for folder in folders)
    if not below and model not in allowed:
        raise InputError(f"model: {model!r} does not lie where models may lie here ({', '.join(allowed)})")


def _check_options(request: StartReplica, engine: EngineConfig) -> None:
    if request.engine == COMMAND.name:
        if set(request.options) != {"command"} or request.options["command"] not in engine.commands:
            raise InputError("options.command: not word for word one of the command lines that may be started here")
        return
    for name, value in request.options.items():
        if name not in engine.options:
            allowed = ", ".join(engine.options) or "none"
            raise InputError(f"options.{name}: not one that an order may set for {request.engine} here ({allowed})")
        if not _is_plain(value):
            raise InputError(f"options.{name}: neither a number, true, false nor a plain word: {value!r}")


def _is_plain(value: Option) -> bool:
    """A word that looks like a flag would be one."""
    return value.isprintable() and not value.startswith("-") if isinstance(value, str) else not isinstance(value, tuple)
