"""What files and programs of a node tell: the bus, the driver's files, the kernel log, the state folder."""

import asyncio
import getpass
import os
import re
import shutil
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from agent.config import AgentConfig
from agent.ending import kill
from agent.sources.pci import BRIDGE, DISPLAY, nvidia_devices
from corral.doctor.node import AGENT

ANSWER_S = 3.0
_VERSION = re.compile(r"\b(\d{3}\.\d{1,3}(?:\.\d{1,3})?)\b")
_ADMIN_ONLY = re.compile(r"RmProfilingAdminOnly: (\d)")
_DRIVER = Path("/proc/driver/nvidia")


async def read_files(config: AgentConfig) -> dict[str, object]:
    """What files and programs of the node tell."""
    bus = nvidia_devices()
    boards = [device for device in bus if (device.class_ or "").startswith(DISPLAY)]
    return {
        "user": getpass.getuser(),
        "package": _package(),
        "module": _found(_VERSION, _DRIVER / "version"),
        "bus_gpus": tuple(device.pci for device in boards),
        "bus_switches": sum(1 for device in bus if (device.class_ or "").startswith(BRIDGE)),
        "passed_on": sum(1 for device in boards if device.is_passed_on),
        "devices": _devices(),
        "kmsg_error": _kmsg_error(config.kmsg),
        "journalctl": shutil.which("journalctl") is not None,
        "unit_capabilities": await _capabilities(),
        "profiling_needs_root": _profiling_needs_root(),
        "state_dir": str(config.state_dir),
        "state_writable": await _may_write(config.state_dir),
        "state_filesystem": _filesystem(config.state_dir),
        "helper": config.helper_socket.exists(),
        "units": config.replica_manager == "systemd",
        "programs": await _programs(config),
    }


async def _programs(config: AgentConfig) -> dict[str, str | None]:
    """The programs that the configuration names, and why each cannot be run."""
    named = {f"plug-in {plugin.name}": plugin.command[0] for plugin in config.plugins}
    named |= {"diag_program": config.diag_program[0]} if config.diag_program else {}
    named |= {"replica_program": config.replica_program[0]} if config.replica_program else {}
    found = await asyncio.gather(*map(_why_not_run, named.values()))
    return dict(zip(named, found, strict=True))


async def _why_not_run(program: str) -> str | None:
    """Asked in a process of its own: a network disk can hang."""
    code = "import shutil, sys; print(bool(shutil.which(sys.argv[1])))"
    answer = await _asked(sys.executable, "-c", code, program)
    if answer is None:
        return f"{program}: its disk does not answer"
    return None if answer == "True" else f"{program}: there is no such program, or it may not be run"


def _devices() -> dict[str, bool]:
    """The files that every user of the driver opens, and whether we may."""
    return {str(path): os.access(path, os.R_OK | os.W_OK) for path in sorted(Path("/dev").glob("nvidia*[0-9l]"))}


def _package() -> str | None:
    try:
        return version("nvidia-ml-py")
    except PackageNotFoundError:
        return None


def _found(pattern: re.Pattern[str], path: Path) -> str | None:
    with suppress(OSError):
        found = pattern.search(path.read_text())
        return found[1] if found else None
    return None


def _profiling_needs_root() -> bool | None:
    admin_only = _found(_ADMIN_ONLY, _DRIVER / "params")
    return None if admin_only is None else admin_only == "1" and os.geteuid() != 0


def _kmsg_error(path: Path) -> str | None:
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError as error:
        return f"{path}: {error.strerror}"
    return None


async def _capabilities() -> str | None:
    """The ambient capabilities of the agent's unit."""
    return await _asked("systemctl", "show", "--value", "--property=AmbientCapabilities", AGENT)


async def _may_write(folder: Path) -> bool | None:
    """Asked in a process of its own: a network disk can hang."""
    code = "import os, sys; print(os.access(sys.argv[1], os.W_OK | os.X_OK))"
    answer = await _asked(sys.executable, "-c", code, str(folder))
    return None if answer is None else answer == "True"


async def _asked(*command: str) -> str | None:
    """What a program prints; None if it fails or takes too long."""
    try:
        child = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError:
        return None
    try:
        async with asyncio.timeout(ANSWER_S):
            out, _ = await child.communicate()
    except TimeoutError:
        return None
    finally:
        await kill(child)
    return out.decode(errors="replace").strip() if child.returncode == 0 else None


def _filesystem(folder: Path) -> str | None:
    """The kind of file system that a folder is on, by the longest mount point above it; nothing is touched."""
    with suppress(OSError):
        mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
        above = [(words[1], words[2]) for words in mounts if folder.absolute().is_relative_to(words[1])]
        return max(above, key=lambda mount: len(mount[0]))[1] if above else None
    return None
