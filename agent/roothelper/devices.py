"""Which device node is which GPU, and which processes have it open: read from /proc alone, so no driver call hangs us.

The driver names a GPU in ``/proc/driver/nvidia/gpus/ADDRESS/information``. A process holds it if one of its open
files is ``/dev/nvidiaN``.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from agent.roothelper.requests import Holder
from vocab.errors import InputError

_UUID = re.compile(r"^GPU UUID:\s*(GPU-[0-9A-Fa-f-]+)\s*$", re.MULTILINE)
_MINOR = re.compile(r"^Device Minor:\s*(\d+)\s*$", re.MULTILINE)
_CAPABILITY = re.compile(r"^DeviceFileMinor:\s*(\d+)\s*$", re.MULTILINE)
# of the system's own systemd: below slices and nothing else. Units of a user or a container may have any name.
_UNIT = re.compile(r"^\d+:[^:]*:/(?:[^/\n]+\.slice/)*([A-Za-z0-9_.@\\-]+\.service)(?:/|$)", re.MULTILINE)


def nodes(proc: Path) -> dict[str, str]:
    """UUID -> ``/dev/nvidiaN`` of every GPU that the driver has. Empty without a driver."""
    found = {}
    for path in sorted((proc / "driver/nvidia/gpus").glob("*/information")):
        try:
            text = path.read_text(errors="replace")
        except OSError:
            continue
        uuid, minor = _UUID.search(text), _MINOR.search(text)
        if uuid and minor:
            found[uuid[1]] = f"/dev/nvidia{minor[1]}"
    return found


def node_of(uuid: str, known: dict[str, str]) -> str:
    """The device of a GPU. Raises InputError for one that the driver does not have."""
    if uuid not in known:
        raise InputError(f"{uuid} is not a GPU that this node's driver has")
    return known[uuid]


def of_slice(proc: Path, node: str, gi: int, ci: int) -> tuple[str, ...]:
    """The capabilities of a MIG instance of the GPU ``node``. Raises InputError for one that is not there."""
    place = proc / "driver/nvidia/capabilities" / f"gpu{node.removeprefix('/dev/nvidia')}" / f"mig/gi{gi}"
    found = []
    for file in (place / "access", place / f"ci{ci}" / "access"):
        try:
            minor = _CAPABILITY.search(file.read_text(errors="replace"))
        except OSError:
            minor = None
        if minor is None:
            raise InputError(f"{node} has no MIG instance {gi}/{ci}")
        found.append(f"/dev/nvidia-caps/nvidia-cap{minor[1]}")
    return tuple(found)


def holders(proc: Path, devices: dict[str, str]) -> tuple[Holder, ...]:
    """The processes that have one of these devices (UUID -> node) open."""
    by_node = {node: uuid for uuid, node in devices.items()}
    found = []
    for folder in sorted(proc.iterdir(), key=lambda path: path.name):
        if not folder.name.isdigit():
            continue
        gpus = tuple(sorted({by_node[target] for target in _open_files(folder) if target in by_node}))
        if gpus:
            found.append(Holder(pid=int(folder.name), name=_name(folder), gpus=gpus, unit=_unit(folder)))
    return tuple(found)


def _open_files(folder: Path) -> Iterator[str]:
    try:
        links = list((folder / "fd").iterdir())
    except OSError:  # it ended meanwhile
        return
    for link in links:
        try:
            yield str(link.readlink())
        except OSError:
            continue


def _name(folder: Path) -> str:
    try:
        return (folder / "comm").read_text(errors="replace").strip()[:64]
    except OSError:
        return "?"


def _unit(folder: Path) -> str | None:
    """The system's service that it belongs to, if any."""
    try:
        text = (folder / "cgroup").read_text(errors="replace")
    except OSError:
        return None
    found = _UNIT.search(text)
    return found[1] if found else None
