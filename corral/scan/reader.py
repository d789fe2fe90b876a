"""One log after another through parser and judge: records when they are whole, events when they are over."""

from collections import defaultdict
from collections.abc import Iterator

import msgspec

from agent.kernel.parsed import Parsed, Prefix
from agent.kernel.parser import Parser
from agent.kernel.prefix import split
from agent.kernel.stamps import Stamps
from corral.scan.files import Entry, blocks, journal
from corral.scan.judged import SOURCES, Judged
from corral.scan.sieve import Sieve
from corral.scan.wrapped import docker, unwrapped
from vocab.errors import InputError
from vocab.events import Event

_NO_PREFIX = Prefix(kind="none")
UNKNOWN_NODE = "unknown"  # a log that names no host
_LOADED = "NVRM: loading NVIDIA"  # the driver's first words, once a boot
_LOOK = 1000  # lines of a block, until one has the form of a log
_BACK_S = 60.0  # an uptime that goes back by more belongs to another boot


class Boots(msgspec.Struct):
    """The boots of one node as its log shows them: when each began (None: no stamp), and its name."""

    began: list[tuple[float | None, str]] = []
    uptime_s: float = 0.0


class Reader:
    """Reads files in the order in which they are given, and counts.

    ``parses``: all records are wanted, else only their number. ``names_boots``: boots that the log itself does not name
    get a name (text logs: where the driver is loaded anew, or uptime begins again). ``node``: of lines that name no
    host. ``at``: seconds since the epoch, of lines that have no time.
    """

    def __init__(
        self,
        stamps: Stamps,
        *,
        parses: bool = False,
        names_boots: bool = False,
        node: str = UNKNOWN_NODE,
        at: float | None = None,
    ) -> None:
        self._stamps = stamps
        self._parses = parses
        self._names_boots = names_boots
        self._node = node
        self._parser = Parser()
        self._judged = Judged()
        self._lines = 0
        self._ended = False
        self.without_time = at
        self.boots: dict[str, Boots] = defaultdict(Boots)
        self.until: float | None = None  # with ``names_boots``: the time of the last line, whosever it is
        self.host: str | None = None  # with ``names_boots``: its node; None while no line has a log's form
        self.last: tuple[str, float | None] = (node, None)  # node and time of the line that was taken last

    @property
    def began(self) -> bool:
        """Whether the file had a first line, or ended without one."""
        return self._lines > 0 or self._ended

    @property
    def lines(self) -> int:
        """Lines so far."""
        return self._lines

    @property
    def unparsed(self) -> int:
        """Lines that claim to be an Xid and could not be parsed."""
        return self._parser.unparsed

    def counts(self) -> str:
        """Lines, records, and what looks like an Xid and could not be parsed."""
        parser = self._parser
        return f"{self._lines} lines, {parser.parsed} parsed, {parser.unparsed} like an Xid that could not be parsed"

    def read(self, *paths: str) -> Iterator[Parsed | Event]:
        """The records and events of these files. Raises InputError after what could be read."""
        broken: InputError | None = None
        try:
            for path in paths:
                for block in blocks(path):
                    yield from self._block(Sieve(block))
        except InputError as error:
            broken = error
        yield from self._parser.flush()
        yield from self._judged.close()
        if broken:
            raise broken
        self._ended = True

    def _block(self, sieve: Sieve) -> Iterator[Parsed | Event]:
        self._lines += sieve.lines
        yield from self._go_on(sieve)  # with a record that was held at the end of the last block
        for text in sieve.interesting():
            yield from self._take(text)
            if self._parser.holding:
                yield from self._go_on(sieve)
        if self._names_boots:
            for line in sieve.first(_LOOK) if self.host is None else ():
                self._signed(line)
            self._signed(sieve.last())

    def _signed(self, line: str) -> None:
        """When and on which node a line was written that may be somebody else's."""
        if line.startswith("{"):
            if (entry := journal(line)) is not None:
                self.until, self.host = entry.at or self.until, entry.node or self._node
        elif (found := split(line)) and found[0].kind != _NO_PREFIX.kind:
            self.until, self.host = self._stamps.at(found[0]) or self.until, found[0].host or self._node

    def _go_on(self, sieve: Sieve) -> Iterator[Parsed | Event]:
        """While a record is held, the very next line may belong to it."""
        while self._parser.holding and (text := sieve.following()) is not None:
            yield from self._take(text)

    def _take(self, text: str) -> Iterator[Parsed | Event]:
        is_json = text.startswith("{") and not text[1:2].isdigit()  # {1}[Hardware Error] is none
        entry = (journal(text) or docker(text)) if is_json else unwrapped(text)
        if entry is None:
            yield from self._parser.feed("")
            return
        found = split(entry.line)
        prefix = found[0] if found else _NO_PREFIX
        goes_on = self._parser.holding and prefix.kind == _NO_PREFIX.kind  # journalctl indents the lines of a record
        node = entry.node or prefix.host or (self.last[0] if goes_on else self._node)
        at = self._stamps.at(prefix) if entry.at is None else entry.at
        at = self.without_time if at is None else at
        self.last = node, at
        if self._parses or not self._parser.passes(entry.line):
            yield from self._parser.feed(entry.line)
        yield from self._judged.take(
            entry.raw,
            source=entry.source or SOURCES.get(prefix.kind, "dmesg"),
            node=node,
            at=at,
            kernel_s=prefix.uptime_s if entry.kernel_s is None else entry.kernel_s,
            facility=entry.facility if prefix.priority is None else prefix.priority >> 3,
            boot_id=self._boot(entry, prefix, node, at) if self._names_boots else entry.boot_id,
        )

    def _boot(self, entry: Entry, prefix: Prefix, node: str, at: float | None) -> str:
        """The boot that a line is of: as the journal names it, or counted."""
        boots = self.boots[node]
        uptime = entry.kernel_s if entry.kernel_s is not None else prefix.uptime_s
        again = _LOADED in entry.line or (uptime is not None and uptime < boots.uptime_s - _BACK_S)
        boots.uptime_s = uptime if uptime is not None else boots.uptime_s
        last = boots.began[-1][1] if boots.began else None
        if entry.boot_id is not None:
            if entry.boot_id != last:
                boots.began.append((at, entry.boot_id))
        elif again or last is None:
            boots.began.append((at, f"{node}, boot {len(boots.began) + 1} of its log"))
        return boots.began[-1][1]
