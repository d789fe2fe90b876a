"""Kernel log: the parser, and a judge over whatever it reads."""

from collections.abc import Iterator

import msgspec

from agent.judge import Judge
from agent.kernel.parsed import Parsed
from agent.kernel.parser import Parser
from tests.agent.made import NODE, inventory
from tests.fuzz.target import Target, kernel_lines
from vocab.messages import EventItem
from vocab.observations import KernelRecord
from vocab.pci import pci_address


def one(data: bytes) -> None:
    """The first byte: by whom (0: the kernel) and whether numbered. The rest: records, with newlines inside at NUL."""
    facility, numbered = data[:1] and data[0] >> 1 & 7, bool(data[:1] and data[0] & 1)
    lines = data[1:].decode(errors="replace").split("\n")
    records = [line.replace("\0", "\n") for line in lines]
    _parse(records)
    _judge(records, facility or 0, numbered=numbered)


def _parse(records: list[str]) -> None:
    parser = Parser()
    parsed = [found for record in records for found in parser.feed(record)] + parser.flush()
    assert parser.lines == len(records)
    assert parser.parsed == len(parsed)
    for found in parsed:
        _check(found)


def _check(found: Parsed) -> None:
    msgspec.json.encode(found.to_json())
    assert found.pci is None or pci_address(found.pci) == found.pci
    assert found.extra_lines >= 0


def _judge(records: list[str], facility: int, *, numbered: bool) -> None:
    judge, now = Judge(NODE), 0.0
    judge.observe(inventory(), now)
    items = []
    for number, line in enumerate(records, 1):
        now += 0.05
        record = KernelRecord(at=now, node=NODE, line=line, facility=facility, seq=number if numbered else None)
        items += judge.observe(record, now)
        items += judge.tick(now)
    for item in [*items, *judge.close(now)]:
        if isinstance(item, EventItem):
            msgspec.json.encode(item)
            assert item.event.injected or not facility or item.event.code.startswith("kernel_")
    Judge.restore(judge.snapshot())


def seeds() -> Iterator[bytes]:
    """Every sample, alone and all together."""
    lines = kernel_lines()
    yield from (b"\0" + line.encode() for line in lines)
    yield b"\1" + "\n".join(lines).encode()
    yield b"\2" + b"3,2211,12345678901,-;NVRM: Xid (PCI:0000:3b:00): 31, pid=100, name=a, Ch 00000001\n SUBSYSTEM=pci"


TARGET = Target(one, seeds)
