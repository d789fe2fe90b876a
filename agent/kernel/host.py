"""What the memory manager, network adapters, the fabric manager and IMEX write, as far as it bears on serving.

What only sounds bad is left out: that a slot gives an adapter little power (mlx5; NVIDIA calls it benign), or what
nvidia-modeset and nvidia-drm say of displays.
"""

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
# Of Amazon's adapters; which of these mean that one is dead is what NVSentinel calls fatal (Linux, hw/efa/efa_com.c).
_EFA = re.compile(
    r"(?:efa ((?:[0-9a-f]{4,8}:)[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])(?: [\w.-]{1,32})?"
    r"|infiniband (?:efa_\d{1,4}|rdmap\w{1,16})): (.{1,400})"
)
_EFA_DEAD = ("Wait for completion (polling) timeout", "didn't send any completion for admin cmd",
             "Admin queue is closed", "Reset indication didn't turn o", "Device isn't ready")  # fmt: skip
_EFA_REFUSED = ("Failed to process command", "Failed to submit command")
_PORT_DOWN = re.compile(r"mlx[45]_core (\S{7,20}) ([\w.-]{1,32}): (?:Port: \d{1,3} Link DOWN|Link down)$")
# Fabric manager and IMEX in a log of the host, and the form of their own log files.
_FABRIC = re.compile(
    r"(?:(?:nv-|nvidia-)?fabric[ -]?manager|nvidia-imex)(?:\[\d{1,10}\])?: {1,4}(?:\[[A-Z][a-z]{2} [\d: ]{1,20}\] )?"
    r"(.{1,400})",
    re.IGNORECASE,
)
_OWN = re.compile(r"\[([A-Z]{4,9})\] \[tid \d{1,10}\] (.{1,400})")
_BAD_LEVELS = frozenset({"ERROR", "CRITICAL", "FATAL"})
_SWITCH = re.compile(r"\bNVSwitch fatal error (\d{1,6})")
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
    if text.startswith(("efa ", "infiniband ")):
        return _amazon(text)
    if down := _PORT_DOWN.match(text):
        fields: Parts = {"nic": down[2], "state": 0}
        return {"kind": Kind.NIC, "reporter": text[:9], "pci": pci_address(down[1]), "text": text, "fields": fields}
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
    """What fabric manager or IMEX complain of: services, with lines in syslog and journal and a log of their own."""
    found = _FABRIC.match(text)
    said = found[1] if found else text
    if own := _OWN.match(said):
        said, wrong = own[2], own[1] in _BAD_LEVELS
    else:
        wrong = found is not None and _WRONG.search(said) is not None
    if not wrong or _HARMLESS.search(said):
        return None
    fields: Parts = {"message": meaning(said)}
    if partition := _PARTITION.search(said):
        fields["partition"] = int(partition[1])
    if switch := _SWITCH.search(said):
        fields["sxid"] = int(switch[1])
    return {"kind": Kind.FABRIC, "text": said, "fields": fields}


def _amazon(text: str) -> Parts | None:
    """A command that an EFA adapter refused, or an adapter that answers none any more."""
    found = _EFA.match(text)
    if not found:
        return None
    dead = any(word in found[2] for word in _EFA_DEAD)
    if not dead and not any(word in found[2] for word in _EFA_REFUSED):
        return None
    fields: Parts = {"message": "it answers no commands" if dead else meaning(found[2])}
    return {
        "kind": Kind.NIC,
        "reporter": "efa",
        "pci": pci_address(found[1]) if found[1] else None,
        "text": found[2],
        "fields": fields | ({"dead": True} if dead else {}),
    }


def meaning(message: str) -> str:
    """The message without what varies from one repeat to the next."""
    return _VARIES.sub("#", message)[:_MEANING]
