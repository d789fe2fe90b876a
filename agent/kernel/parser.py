"""Joins the lines of one record and gives what it says.

One print of the driver may arrive as one record with newlines inside, as several records, or as lines that ``dmesg``
has indented. A record that could go on (an Xid without payload, firmware reports with their tables, notes) is held
until the next line or ``flush``; all others come out at once: nothing delays an Xid 79.
"""

import re
from collections.abc import Iterable, Iterator

from agent.kernel.client import CLIENT
from agent.kernel.firmware import is_of_report, report
from agent.kernel.lines import FALLEN, MARK, classify, looks_like_xid
from agent.kernel.parsed import Kind, Parsed, Prefix
from agent.kernel.prefix import split
from agent.kernel.starts import REGION

_ESCAPE = re.compile(r"\\x([0-9a-f]{2})")
_TABLES = frozenset({119, 120})  # GSP reports: registers, RPC history and a stack follow
_MOST_WHOLE = 512  # texts; a storm has a few dozen
_MAX_LINES = 256  # of one record: a firmware report is about 100 lines

# Further lines of one print that carry the driver's mark themselves, by how the first line begins.
_TAILS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "The NVIDIA GPU ",
        ("(PCI ID: ", "installed in this system ", "fallen off the bus and ", "not supported by ", "Please see "),
    ),
    (REGION, ("BAR",)),
    (
        CLIENT,
        (
            "has the version ",
            "this kernel module ",
            "the version ",
            "make sure that ",
            "kernel module and all ",
            "components have ",
            "have the same version",
        ),
    ),
    ("A GPU crash dump has been created.", ("nvidia-bug-report.sh as root ", "the NVIDIA kernel module ")),
)
# What these are about is told by all their lines together.
_JOINED = (MARK + "The NVIDIA GPU ", MARK + REGION, MARK + CLIENT)
_TABLE_TAILS = re.compile(r"GPU\d{1,4} (?:GSP RPC buffer contains|RPC history) ")


class _Open:
    """A record that may go on: its prefix, its first text, the texts that followed, and the lines as read."""

    def __init__(self, prefix: Prefix, text: str, parsed: Parsed) -> None:
        self.prefix = prefix
        self.texts = [text]
        self.lines = list(parsed.lines)
        self.parsed = parsed

    def takes(self, line: str, text: str | None) -> bool:
        """Whether a line (and its text, None where some other program wrote it) goes on with this record."""
        if len(self.lines) >= _MAX_LINES or text is None:
            return False
        if self.parsed.kind is Kind.FIRMWARE:
            return is_of_report(self.texts[0], text)
        if line.startswith(("  ", "\t")) and line.strip():
            return True
        if self.parsed.kind is Kind.XID and not self.parsed.payload:
            return bool(text) and classify(text) is None and not looks_like_xid(text)
        if not text.startswith(MARK):
            return False
        said = text[len(MARK) :]
        if said.startswith(" "):
            return True
        if self.parsed.xid in _TABLES:
            return _TABLE_TAILS.match(said) is not None
        head = self.texts[0]
        return any(head.startswith(MARK + start) and said.startswith(tails) for start, tails in _TAILS)

    @property
    def is_whole(self) -> bool:
        """Whether nothing can follow: the words about a GPU off the bus are its last."""
        return FALLEN in self.texts[-1] and self.texts[0].startswith(MARK + "The NVIDIA GPU ")

    def add(self, line: str, text: str) -> None:
        """Take a further line."""
        self.lines.append(line)
        self.texts.append(text.strip().removeprefix(MARK))

    def finish(self) -> Parsed:
        """The record with all its lines."""
        if len(self.texts) == 1:
            return self.parsed
        return _whole(self.prefix, self.texts, tuple(self.lines)) or self.parsed


# One of these stands in every line of a kind that we know, and in few others.
MARKS = (
    "NVRM:",
    "nvidia-",
    "infoROM is corrupted",
    "AER: ",
    "PCIe ",
    "[Hardware Error]: ",
    "EDAC MC",
    "Memory failure: ",
    "DPC: ",
    "pciehp: ",
    "change power state",
    "nvidia: probe of ",
    "probe with driver nvidia",
    "blocked for more than ",
    "soft lockup - CPU#",
    "hard LOCKUP on cpu",
    "rcu_",
    "BUG: ",
    "kernel BUG at ",
    "nable to handle kernel",
    "general protection fault",
    "Oops: ",
    " Comm: ",  # of which process the kernel complains
    "[nvidia",  # a trace that stands in the driver
    "[gdrdrv",
    "nv_mem ",
    ":   ",  # the details below an AER report
    "GSP task ",
    "Reported by libos ",
    "RISC-V ",
    "illed process ",
    "oom-kill:",
    "mlx5_core ",
    "mlx4_core ",
    "abric",  # the fabric manager, however it is spelled
    "] [tid ",  # and in its own log, as in that of IMEX
    "efa ",
    "infiniband efa_",
    "infiniband rdmap",
    "nvme nvme",
    " @ LBA ",
    " error, dev ",
    "Buffer I/O error",
    "-fs error",
    "Remounting filesystem",
    "XFS (",
    "BTRFS ",
)


def of_interest(line: str) -> bool:
    """Whether a line can be of a kind that we know: a quick look, true for all that are and few others."""
    return "NVRM:" in line or any(mark in line for mark in MARKS)


class Parser:
    """Lines in, records out. Counts ``lines``, ``parsed`` records, and ``unparsed`` lines that claim to be an Xid."""

    def __init__(self) -> None:
        self.lines = 0
        self.parsed = 0
        self.unparsed = 0
        self._open: _Open | None = None
        self._whole: set[tuple[str, str]] = set()  # kinds of prefix and texts that were a record each

    def feed(self, line: str) -> list[Parsed]:
        """Take one line, or one record with newlines inside; give the records that are now complete."""
        self.lines += 1
        if self._open is None and not of_interest(line):
            return []
        return self._count(self._take(line.rstrip("\r\n")))

    def passes(self, line: str) -> bool:
        """Count a line that is a record by itself as its like was before; False: it is to be fed."""
        found = None if self._open else split(line)
        if found is None or (found[0].kind, found[1]) not in self._whole:
            return False
        self.lines += 1
        self.parsed += 1
        return True

    def flush(self) -> list[Parsed]:
        """Give the record that was held in case it went on: at the end of input, or when 100 ms have passed."""
        return self._count(self._close())

    @property
    def holding(self) -> bool:
        """Whether a record is held."""
        return self._open is not None

    def _count(self, records: list[Parsed]) -> list[Parsed]:
        self.parsed += len(records)
        return records

    def _take(self, line: str) -> list[Parsed]:
        if line.startswith(" ") and _is_property(line):
            return []  # a property of the /dev/kmsg record before
        done: list[Parsed] = []
        found = split(line)
        if self._open:
            if self._open.takes(line, found and found[1]):
                self._open.add(line, found[1] if found else line)
                return self._close() if self._open.is_whole else []
            done += self._close()
        record = self._read(line, *found) if found else None
        return [*done, record] if record else done

    def _close(self) -> list[Parsed]:
        """Give the record that was held."""
        held, self._open = self._open, None
        return [held.finish()] if held else []

    def _read(self, line: str, prefix: Prefix, text: str) -> Parsed | None:
        """The record that a line begins; None if it is none, or is held because it could go on."""
        texts = _inside(prefix, text)
        record = _whole(prefix, texts, (line,))
        if record is None:
            self.unparsed += looks_like_xid(texts[0])
            return None
        if len(texts) == 1 and _may_go_on(record):
            self._open = _Open(prefix, texts[0], record)
            return None
        if len(self._whole) >= _MOST_WHOLE:
            self._whole.clear()
        self._whole.add((prefix.kind, text))
        return record


def parse(lines: Iterable[str]) -> Iterator[Parsed]:
    """All records of these lines, in order."""
    parser = Parser()
    for line in lines:
        yield from parser.feed(line)
    yield from parser.flush()


def _may_go_on(record: Parsed) -> bool:
    if record.kind is Kind.XID:
        return not record.payload or record.xid in _TABLES
    return record.kind in {Kind.TEXT, Kind.FIRMWARE}


def _whole(prefix: Prefix, texts: list[str], lines: tuple[str, ...]) -> Parsed | None:
    """The record that these texts make together. Only some kinds read beyond the first text."""
    record = _build(prefix, texts[0], lines, len(texts) - 1)
    if record is None or len(texts) == 1:
        return record
    if record.kind is Kind.FIRMWARE:
        parts = report(texts)
        return Parsed(prefix=prefix, extra_lines=len(texts) - 1, lines=lines, **parts) if parts else record
    joined = texts[0]
    if record.kind is Kind.XID and not record.payload:
        joined = texts[0].rstrip() + " " + texts[1].strip()
    elif record.kind is Kind.TEXT and texts[0].startswith(_JOINED):
        joined = " ".join(text.removeprefix(MARK).strip() for text in texts)
        joined = MARK + joined
    else:
        return record
    longer = _build(prefix, joined, lines, len(texts) - 1)
    return longer if longer and (longer.kind is not Kind.TEXT) else record


def _build(prefix: Prefix, text: str, lines: tuple[str, ...], extra: int) -> Parsed | None:
    parts = classify(text)
    return Parsed(prefix=prefix, extra_lines=extra, lines=lines, **parts) if parts else None


def _inside(prefix: Prefix, text: str) -> list[str]:
    """The lines inside one record. /dev/kmsg writes a newline as ``\\x0a``; its properties are dropped."""
    if prefix.kind == "kmsg_raw":
        text = "\n".join(line for line in text.split("\n") if not _is_property(line))
        text = _unescaped(text)
    if "\n" not in text:
        return [text]
    return [part for part in text.split("\n") if part.strip()] or [""]


def _is_property(line: str) -> bool:
    """`` SUBSYSTEM=pci``: one blank, an upper-case key, an equals sign."""
    key, equals, _ = line[1:65].partition("=")
    return bool(equals) and line.startswith(" ") and key.isidentifier() and key.isupper()


def _unescaped(text: str) -> str:
    """Undo the kernel's escapes; bytes that are no UTF-8 become replacement characters."""
    if "\\x" not in text:
        return text
    parts, end = [], 0
    for found in _ESCAPE.finditer(text):
        parts += [text[end : found.start()].encode(errors="replace"), bytes([int(found[1], 16)])]
        end = found.end()
    parts.append(text[end:].encode(errors="replace"))
    return b"".join(parts).decode(errors="replace")
