"""What the memory manager, network adapters and the fabric manager write, as far as it bears on serving."""

import re
from typing import Any

from agent.kernel.parsed import Kind
from vocab.pci import pci_address

Parts = dict[str, Any]

# Killed process 1234 (python) total-vm:..., behind "Out of memory: " or "Memory cgroup out of memory: "
_KILLED = re.compile(
    r"(Memory cgroup out of memory|Out of memory|)(?:: )?Killed process (\d{1,10})(?:, UID \d{1,10},)? "
    r"\((.{1,64}?)\)(?:[ ,.]|$)"
)
_CHOSEN = re.compile(r"oom-kill:constraint=([A-Z_]{1,40}),")
_TASK = re.compile(r",task=(.{1,64}?),pid=(\d{1,10}),")
_CGROUP = re.compile(r",task_memcg=([^,]{1,200}),")
_RESIDENT = re.compile(r"\banon-rss:(\d{1,15})kB")
_ADAPTER = re.compile(
    r"(mlx[45]_core) ((?:[0-9a-f]{4,8}:)[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])(?: [\w.-]{1,32})?: (.{1,400})"
)
# Of an adapter whose firmware no longer works (Linux, mlx5/core/health.c and cmd.c), by what is said of it.
_DEAD: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("a command ran out of time", (" timeout. Will cause a leak of a command resource",)),
    (
        "its firmware has failed",
        ("device's health compromised - reached miss count", "Health issue observed, firmware internal error",
         "unrecoverable hardware error"),
    ),
)  # fmt: skip
_FABRIC = re.compile(r"(?:nv-|nvidia-)?fabric[ -]?manager(?:\[\d{1,10}\])?: {1,4}(.{1,400})", re.IGNORECASE)
_WRONG = re.compile(r"\b(?:mismatch|fail(?:ed|ure)?|fatal|error|abort(?:ed|ing))\b", re.IGNORECASE)
_HARMLESS = re.compile(r"\bnon-?fatal\b|NV_WARN_NOTHING_TO_DO", re.IGNORECASE)  # the latter: no switch is there
_PARTITION = re.compile(r"\bpartition(?: id)?:? (\d{1,6})")
_VARIES = re.compile(r"0x[0-9a-fA-F]{1,16}|\b\d{1,20}\b")  # numbers, pids, addresses: not what tells two messages apart
_MEANING = 120  # characters of a message by which repeats of it are known


def killed(text: str) -> Parts | None:
    """A process that the kernel killed for want of memory."""
    if found := _CHOSEN.match(text):
        task, cgroup = _TASK.search(text), _CGROUP.search(text)
        if task is None:
            return None
        fields: Parts = {"constraint": found[1]} | ({"cgroup": cgroup[1]} if cgroup else {})
        return {"kind": Kind.OOM, "pid": int(task[2]), "name": task[1], "text": text[:400], "fields": fields}
    if not (found := _KILLED.match(text)):
        return None
    resident = _RESIDENT.search(text)
    fields = {"memcg": found[1].startswith("Memory")} | ({"rss_bytes": int(resident[1]) * 1024} if resident else {})
    return {"kind": Kind.OOM, "pid": int(found[2]), "name": found[3], "text": text[:400], "fields": fields}


def adapter(text: str) -> Parts | None:
    """A command that a network adapter's firmware refused, or firmware that answers none any more."""
    found = _ADAPTER.match(text)
    if not found:
        return None
    dead = next((what for what, words in _DEAD if any(word in found[3] for word in words)), None)
    if dead is None and " failed" not in found[3]:
        return None
    return {
        "kind": Kind.NIC,
        "reporter": found[1],
        "pci": pci_address(found[2]),
        "text": found[3],
        "fields": {"message": dead or meaning(found[3])} | ({"dead": True} if dead else {}),
    }


def fabric(text: str) -> Parts | None:
    """What the fabric manager complains of. It runs as a service: its lines are in syslog and journal."""
    found = _FABRIC.match(text)
    if not found or not _WRONG.search(found[1]) or _HARMLESS.search(found[1]):
        return None
    partition = _PARTITION.search(found[1])
    fields: Parts = {"message": meaning(found[1])} | ({"partition": int(partition[1])} if partition else {})
    return {"kind": Kind.FABRIC, "text": found[1], "fields": fields}


def meaning(message: str) -> str:
    """The message without what varies from one repeat to the next."""
    return _VARIES.sub("#", message)[:_MEANING]
