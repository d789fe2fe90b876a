"""How a line was recorded: the part before the kernel's own text, in every form that tools print it.

Each pattern is anchored, has bounded parts and no two repeats that can match the same text, so the cost is linear.
"""

import re
from datetime import UTC, datetime
from functools import lru_cache

import msgspec

from agent.kernel.parsed import Prefix

_HOST = 90  # a host's name and the word kernel behind it
_HEAD = 160  # no prefix is longer; the rest of a line is never searched for one

_NUMBER = re.compile(r"\s{0,12}(\d{1,12})(?:\.(\d{1,9}))?\s?")
_DELTA = re.compile(r"\s{0,12}\+(\d{1,12}\.\d{1,9})")
_UPTIME_DELTA = re.compile(r"\s{0,12}(\d{1,12}\.\d{1,9}) <\s{0,12}\+?(\d{1,12}\.\d{1,9})>")
_MONTH = r"(?:[^\W\d]\S{0,11}|\d{1,2}[月월])"
_CTIME = re.compile(rf"[^\W\d]\S{{0,11}} {_MONTH} {{1,2}}\d{{1,2}} \d\d:\d\d:\d\d \d{{4}}")
_MINUTE = re.compile(r"[^\W\d]{1,9}\.?\s?\d{1,2} \d\d:\d\d")
_CALLER = re.compile(r" ?\[ {0,8}([TC]\d{1,8})\] ?")
_PSTORE = re.compile(r"<(\d{1,3})>(?:1 (?=\d{4}-))?")  # and RFC 5424, which puts its version behind
_KMSG = re.compile(r"(\d{1,4}),(\d{1,18}),(\d{1,18}),([^;]{0,200});")
_FLAG_CALLER = re.compile(r"caller=([TC]\d{1,8})")
_DECODED = re.compile(r"([a-z0-9]{2,8}) {0,5}:([a-z]{2,7}) {0,5}: ?")
_ISO = re.compile(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?) ")
_TALOS = re.compile(r"(\S{1,80}): kern: {1,4}([a-z]{2,9}): \[(\d{4}-\d\d-\d\dT[0-9:.]{8,20}Z)\]: ")
_SYSLOG = re.compile(rf"({_MONTH} {{1,2}}\d{{1,2}} \d\d:\d\d:\d\d(?:\.\d{{1,9}})?) ")
_FULL = re.compile(r"([^\W\d]\S{0,11} \d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,9})? \S{1,8}) ")
_UNIX = re.compile(r"(\d{9,11}\.\d{1,9}) ")
_HOST_KERNEL = re.compile(r"(\S{1,80}) (?:kern\.[a-z]{2,8} )?kernel(?:: ?| - - - {1,2})")
_HOST_FABRIC = re.compile(
    r"(\S{1,80}) (?=(?:(?:nv-|nvidia-)?fabric[ -]?manager|nvidia-imex)(?:\[\d{1,10}\])?: )", re.IGNORECASE
)
_OWN = re.compile(r"[A-Z][a-z]{2} {1,2}\d{1,2} \d{4} \d\d:\d\d:\d\d")  # the log files of fabric manager and IMEX
_DRIVER = r"(?:NVRM: |nvidia-nvswitch\d)"
_LEVEL = r"(?i:trace|debug|info|notice|warn(?:ing)?|err(?:or)?|crit(?:ical)?|fatal|alert|emerg)"
# A receiver of other machines' logs may keep no tag of the kernel: then the driver's own words follow the host. A level
# or a tag (with a colon) there is of some program that quotes them.
_HOST_DRIVER = re.compile(
    rf"(?!{_LEVEL} )([\w.:-]{{0,79}}\w) (?=(?:\[ {{0,12}}\d{{1,12}}(?:\.\d{{1,9}})?\] )?{_DRIVER})"
)
_REPEATED = re.compile(r"message repeated (\d{1,6}) times: \[ ?(.{1,4000})\]$", re.DOTALL)  # rsyslog
_WITHIN = re.compile(rf"\[ {{0,6}}(\d{{1,8}}\.\d{{6}})\] (?={_DRIVER})")

FACILITIES = ("kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp")

# A poster may have cut host and tag off: then the kernel's text follows the stamp at once.
_TEXTS = (
    "NVRM:", "nvidia-nvswitch", "nvidia-peermem", "nv_mem ", "pcieport ", "nvidia ", "mlx5_core ", "mlx4_core ",
    "mce: ", "EDAC ", "Memory failure: ", "{", "[", "oom-kill:", "Out of memory", "Memory cgroup out of memory",
    "fabric manager", "nv-fabricmanager", "nvme", "blk_update_request: ", "I/O error, dev ", "critical ",
    "Buffer I/O error", "EXT4-fs ", "XFS (", "BTRFS ", "nvidia-imex", "efa ", "infiniband ",
)  # fmt: skip


@lru_cache(maxsize=8)  # several ask for the same line in turn
def split(line: str) -> tuple[Prefix, str] | None:
    """The prefix of a line and what the kernel printed; None for a line that some other program logged."""
    found = _split(line)
    if found is None or found[0].kind == "none":
        return found
    prefix, text = found
    if text.startswith("message repeated ") and (mark := _REPEATED.match(text)):
        inner, text = _without_uptime(prefix, mark[2])
        return msgspec.structs.replace(inner, times=int(mark[1])), text
    if prefix.uptime_s is not None and "] N" in text[:_HEAD] and (mark := _WITHIN.search(text[:_HEAD])):
        # a console that two processors wrote to at once: the line that was cut is lost, this one is whole
        return msgspec.structs.replace(prefix, uptime_s=float(mark[1])), text[mark.end() :]
    return found


def _split(line: str) -> tuple[Prefix, str] | None:
    first = line[:1]
    if first == "[":
        return _bracket(line)
    if first == "<" and (mark := _PSTORE.match(line)):
        inner = _split(line[mark.end() :])
        if inner is None:
            return None
        kind = inner[0].kind if inner[0].host else "pstore"
        return msgspec.structs.replace(inner[0], kind=kind, priority=int(mark[1])), inner[1]
    if line.startswith(("kernel: ", "kernel:[", " kernel:[")):  # the last: syslogd, to all terminals
        return _tagged(line.partition("kernel:")[2].removeprefix(" "))
    if mark := _KMSG.match(line):
        return _kmsg(mark, line)
    if mark := _ISO.match(line):
        return _after_iso(mark[1].replace(",", "."), line[mark.end() :])
    if mark := _UNIX.match(line):
        iso = datetime.fromtimestamp(float(mark[1]), UTC).isoformat(timespec="microseconds")
        return _after_iso(iso, line[mark.end() :])
    if (mark := _TALOS.match(line, 0, _HEAD)) is not None:
        return Prefix(kind="talos", level=mark[2], iso=mark[3]), line[mark.end() :]
    if (mark := _DECODED.match(line)) and mark[1] in FACILITIES and (inner := _decoded(mark, line)):
        return inner
    if mark := _SYSLOG.match(line) or _FULL.match(line):
        return _after_stamp(Prefix(kind="syslog_short", text=mark[1]), line[mark.end() :])
    return Prefix(kind="none"), line


def _kmsg(mark: re.Match[str], line: str) -> tuple[Prefix, str]:
    """A raw record of /dev/kmsg: ``priority,sequence,microseconds,flags;text``."""
    caller = _FLAG_CALLER.search(mark[4])
    prefix = Prefix(
        kind="kmsg_raw",
        uptime_s=int(mark[3]) / 1e6,
        seq=int(mark[2]),
        priority=int(mark[1]),
        caller=caller[1] if caller else None,
    )
    return prefix, line[mark.end() :]


def _after_iso(iso: str, rest: str) -> tuple[Prefix, str] | None:
    """After an ISO stamp: host and tag of the kernel, its text at once (dmesg), or some other program's."""
    if host := _HOST_KERNEL.match(rest):
        return _without_uptime(Prefix(kind="syslog_iso", iso=iso, host=host[1]), rest[host.end() :])
    if service := _HOST_FABRIC.match(rest):
        return Prefix(kind="syslog_iso", iso=iso, host=service[1]), rest[service.end() :]
    if driver := _HOST_DRIVER.match(rest):
        return _without_uptime(Prefix(kind="syslog_iso", iso=iso, host=driver[1]), rest[driver.end() :])
    if (stamp := _SYSLOG.match(rest)) and (inner := _after_stamp(Prefix(kind="syslog_iso"), rest[stamp.end() :])):
        return msgspec.structs.replace(inner[0], iso=iso, text=None), inner[1]  # a collector's stamp before the line
    return (Prefix(kind="dmesg_decode_iso", iso=iso), rest) if rest.startswith(_TEXTS) else None


def _bracket(line: str) -> tuple[Prefix, str]:
    """Stamps in brackets: uptime, delta, ctime, or a poster's ``[...]``."""
    end = line.find("]", 0, _HEAD)
    inner, rest = line[1:end], line[end + 1 :]
    if end < 0:
        return Prefix(kind="none"), line
    if mark := _NUMBER.fullmatch(inner):
        uptime_s = float(inner.strip())
        if rest.startswith(("[", " [")) and (caller := _CALLER.match(rest)):
            return Prefix(kind="dmesg_uptime_caller", uptime_s=uptime_s, caller=caller[1]), rest[caller.end() :]
        rest = rest.removeprefix(" ")
        if " kernel" in rest[:_HOST] and (host := _HOST_KERNEL.match(rest)):  # journalctl -o short-monotonic
            return Prefix(kind="dmesg_uptime", uptime_s=uptime_s, host=host[1]), rest[host.end() :]
        return Prefix(kind="dmesg_uptime", uptime_s=uptime_s), rest
    rest = rest.removeprefix(" ")
    if inner == "...":
        return Prefix(kind="elided"), rest
    if mark := _DELTA.fullmatch(inner):
        return Prefix(kind="dmesg_delta", delta_s=float(mark[1])), rest
    if mark := _UPTIME_DELTA.fullmatch(inner):
        return Prefix(kind="dmesg_delta", uptime_s=float(mark[1]), delta_s=float(mark[2])), rest
    if _CTIME.fullmatch(inner):
        return Prefix(kind="dmesg_ctime", text=inner, tz="host local"), rest
    if _OWN.fullmatch(inner):
        return Prefix(kind="fabric_manager", text=inner, tz="host local"), rest
    if _MINUTE.fullmatch(inner):  # dmesg -H: the first line of each minute
        return Prefix(kind="dmesg_delta", text=inner), rest
    return Prefix(kind="none"), line


def _decoded(mark: re.Match[str], line: str) -> tuple[Prefix, str] | None:
    """``kern  :warn  : STAMP text`` of dmesg -x, with any of dmesg's stamps."""
    rest = line[mark.end() :]
    if stamp := _ISO.match(rest):
        iso = stamp[1].replace(",", ".")
        return Prefix(kind="dmesg_decode_iso", facility=mark[1], level=mark[2], iso=iso), rest[stamp.end() :]
    if not rest.startswith("["):
        return None
    prefix, text = _bracket(rest)
    return msgspec.structs.replace(prefix, facility=mark[1], level=mark[2]), text


def _after_stamp(prefix: Prefix, rest: str) -> tuple[Prefix, str] | None:
    """After a syslog stamp: host and tag of the kernel, none at all, or some other program's."""
    if host := _HOST_KERNEL.match(rest):
        return _without_uptime(msgspec.structs.replace(prefix, host=host[1]), rest[host.end() :])
    if service := _HOST_FABRIC.match(rest):
        return msgspec.structs.replace(prefix, host=service[1]), rest[service.end() :]
    if driver := _HOST_DRIVER.match(rest):
        return _without_uptime(msgspec.structs.replace(prefix, host=driver[1]), rest[driver.end() :])
    cut = Prefix(kind="syslog_short_cut", text=prefix.text)
    if rest.startswith("kernel: "):
        return _without_uptime(cut, rest[8:])
    return _without_uptime(cut, rest) if rest.startswith(_TEXTS) else None


def _without_uptime(prefix: Prefix, rest: str) -> tuple[Prefix, str]:
    """Take the ``[uptime]`` that some loggers leave in front of the text."""
    if not rest.startswith("["):
        return prefix, rest
    inner, text = _bracket(rest)
    if inner.uptime_s is None:
        return prefix, rest
    kind = "syslog_uptime" if prefix.kind == "syslog_short" else prefix.kind
    return msgspec.structs.replace(prefix, kind=kind, uptime_s=inner.uptime_s, caller=inner.caller), text


def _tagged(rest: str) -> tuple[Prefix, str]:
    prefix, text = _without_uptime(Prefix(kind="kernel_tag"), rest)
    return (prefix if prefix.uptime_s is None else msgspec.structs.replace(prefix, kind="kernel_tag_uptime")), text
