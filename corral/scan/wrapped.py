"""Lines of a kernel log as other tools have wrapped them: container runtimes, kubectl, grep and pdsh.

What is inside must itself look as the kernel's loggers write it; a program that only quotes such a line is left alone.
"""

import re

import msgspec

from agent.kernel.prefix import split
from corral.scan.files import Entry
from vocab.events import epoch_s

_CRI = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)) std(?:out|err) [FP] ")
_POD = re.compile(r"\[pod/[^\]]{1,250}\] ")  # kubectl logs --prefix
_NAMED = re.compile(r"([\w.@+/-]{1,200}):(?:\d{1,9}:)? ?(?=[\[<\w])")  # grep -H and -n, pdsh, clush
_FILE = re.compile(r"/|\.(?:log|gz|txt)\b|^(?:kern|messages|syslog|dmesg)|^\d+$")


class _Docker(msgspec.Struct):
    """A line of docker's json-file driver."""

    log: str
    time: str | None = None


_DECODER = msgspec.json.Decoder(_Docker)


def docker(line: str) -> Entry | None:
    """A line of docker's own log; None if it is none."""
    try:
        found = _DECODER.decode(line)
    except msgspec.MsgspecError:
        return None
    return _at(found.log.rstrip("\r\n"), found.time)


def unwrapped(line: str) -> Entry:
    """The line without what a tool has put in front of it, with the time or the node that this says."""
    line = _without_pod(line)
    if found := _CRI.match(line):
        return _at(line[found.end() :], found[1])
    outer = split(line)
    if outer is None or outer[0].kind != "none" or not (found := _NAMED.match(line)):
        return Entry(line, line)
    inside = line[found.end() :]
    inner = split(inside)
    if inner is None or inner[0].kind == "none":
        return Entry(line, line)
    return Entry(inside, inside, node=None if inner[0].host or _FILE.search(found[1]) else found[1])


def _without_pod(line: str) -> str:
    found = _POD.match(line) if line.startswith("[pod/") else None
    return line[found.end() :] if found else line


def _at(line: str, time: str | None) -> Entry:
    """A line whose wrapping says when it was written; its own stamp is worth more."""
    inner = split(line)
    dated = inner is not None and (inner[0].iso is not None or inner[0].text is not None)
    return Entry(line, line, at=None if dated else _seconds(time))


def _seconds(time: str | None) -> float | None:
    try:
        return epoch_s(re.sub(r"(\.\d{6})\d+", r"\1", time)) if time else None
    except ValueError:
        return None
