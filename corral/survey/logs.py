"""Which files are which node's, and in which order they were written.

A folder may hold one folder a node (its name is the node's), or files that are named after nodes or name their host in
each line. Files of one node are read in one piece, the oldest first, so that a rotated log is one log.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import msgspec

from agent.kernel.prefix import split
from agent.kernel.stamps import Stamps
from corral.scan.files import blocks, journal
from vocab.errors import InputError

_ENDS = re.compile(r"\.(gz|log|txt|json|jsonl|export|journal|dmesg|kern|\d{1,3})$|[-.]20\d{6}$")
_USUAL = frozenset({"kern", "messages", "syslog", "dmesg", "journal", "kernel", "kmsg"})
_LOOK = 200  # lines until one has a time


class Log(msgspec.Struct, frozen=True):
    """The files of one node: ``node`` is its name where its lines name none."""

    node: str
    paths: tuple[str, ...]


def logs(named: Iterable[str]) -> list[Log]:
    """The logs in these files and folders. Raises InputError if there is none."""
    found: dict[tuple[str, str], list[str]] = {}
    for name in named:
        path = Path(name)
        if not path.is_dir():
            found.setdefault(("", name), []).append(name)
            continue
        for root, node, file in sorted(_inside(path)):
            found.setdefault((root, node), []).append(file)
    if not found:
        raise InputError("there is no file to read; name kernel logs, folders of them, or --ssh HOSTS")
    made = (Log(_node(node), tuple(paths)) for (_, node), paths in found.items())
    return sorted(made, key=lambda log: (log.node, log.paths))


def _inside(folder: Path) -> Iterator[tuple[str, str, str]]:
    for file in folder.rglob("*"):
        if file.is_file() and not any(part.startswith(".") for part in file.relative_to(folder).parts):
            inner = file.relative_to(folder).parts
            yield str(folder), inner[0] if len(inner) > 1 else _stem(file.name), str(file)


def _stem(name: str) -> str:
    """A file's name without what says only its form or its turn."""
    while (shorter := _ENDS.sub("", name)) != name and shorter:
        name = shorter
    return name


def _node(name: str) -> str:
    stem = _stem(Path(name).name)
    return "unknown" if stem in _USUAL or stem == "-" else stem


def oldest_first(paths: Iterable[str], stamps: Stamps) -> list[str]:
    """The files in the order of their first stamps. One that cannot be read stays last: reading it says why."""
    return sorted(paths, key=lambda path: (_begins(path, stamps), path))


def _begins(path: str, stamps: Stamps) -> float:
    try:
        lines = next(blocks(path), "").split("\n", _LOOK)
    except InputError:
        return float("inf")
    return next(islice(_stamped(lines, stamps), 1), written_at(path))


def _stamped(lines: Iterable[str], stamps: Stamps) -> Iterator[float]:
    for line in lines:
        entry = journal(line) if line.startswith("{") else None
        if entry is not None and entry.at is not None:
            yield entry.at
        elif (found := split(line)) is not None and (at := stamps.at(found[0])) is not None:
            yield at


def written_at(path: str) -> float:
    """When the file was written last, seconds since the epoch."""
    try:
        return Path(path).stat().st_mtime
    except OSError:
        return float("inf")
