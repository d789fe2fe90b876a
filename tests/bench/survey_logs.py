"""A month of kernel logs of a fleet, made from nothing but a seed: what every node says, and some faults in it."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

START = datetime(2026, 11, 1, tzinfo=UTC)
BUSES = ("19", "3b", "4c", "5d", "9b", "bb", "cb", "db")
CHATTER = (
    "docker0: port {n}(veth{h:07x}) entered blocking state",
    "docker0: port {n}(veth{h:07x}) entered forwarding state",
    "IPv6: ADDRCONF(NETDEV_CHANGE): veth{h:07x}: link becomes ready",
    'audit: type=1400 audit({h}.{n}:{n}): apparmor="ALLOWED" operation="open" profile="dockerd" pid={h}',
    "TCP: eth0: Driver has suspect GRO implementation, TCP performance may be compromised. flags={n}",
    "perf: interrupt took too long ({n} > {h}), lowering kernel.perf_event_max_sample_rate to {h}",
    "device veth{h:07x} entered promiscuous mode",
    "nfs: server 10.0.{n}.7 OK",
    "IPVS: rr: UDP 10.0.{n}.12:53 - no destination available {h}",
)
LOADED = "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  570.86.15  Thu Jan 23 12:00:00 UTC 2026"
APP = "Xid (PCI:{pci}): 31, pid={n}, name=python3, Ch 00000010, intr 00000000. MMU Fault: ENGINE GRAPHICS"
STORM = "Xid (PCI:{pci}): 13, pid={n}, name=python3, Graphics SM Warp Exception on (GPC 1, TPC 2, SM 0): Out Of Range"
KINDS = {
    "off_bus": "Xid (PCI:{pci}): 79, GPU has fallen off the bus.",
    "ecc": "Xid (PCI:{pci}): 48, pid={n}, name=python3, DBE (double bit error) ECC Error",
    "contained": "Xid (PCI:{pci}): 94, pid={n}, name=python3, Contained: SM (0x1). RST: No, D-RST: No",
    "uncontained": "Xid (PCI:{pci}): 95, pid={n}, name=python3, Uncontained: LTC TAG (0x2,0x0). RST: Yes, D-RST: No",
    "remap": "Xid (PCI:{pci}): 63, pid='<unknown>', name=<unknown>, Row Remapper: New row marked for remapping",
    "remap_failed": "Xid (PCI:{pci}): 64, pid='<unknown>', name=<unknown>, Row Remapper: Error recording remapping",
    "gsp": "Xid (PCI:{pci}): 119, pid={n}, name=python3, Timeout waiting for RPC from GPU{n} GSP!",
    "link": "Xid (PCI:{pci}): 74, pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link 3",
}


def node_name(number: int) -> str:
    """Of the node of this number."""
    return f"gpu-{number:04d}"


def uuid(node: int, gpu: int) -> str:
    """Of a GPU."""
    return f"GPU-{node:08x}-0000-4000-8000-{gpu:012x}"


def serial(node: int, gpu: int) -> str:
    """Of a GPU."""
    return f"165{node:06d}{gpu:02d}"


def faults(number: int, days: int) -> list[tuple[float, str, int]]:
    """What befalls a node: (day, what, GPU). Boots are those that people ordered."""
    chance = random.Random(f"faults of {number}")
    found = [(chance.uniform(0.1, days), "app", chance.randrange(8)) for _ in range(chance.randrange(12))]
    if number % 50 == 7:  # off the bus, and seen by somebody three days later
        found += [(days * 0.3, "off_bus", 2), (days * 0.3 + 3.1, "boot", 0)]
    if number % 83 == 11:  # off the bus, and nobody has seen it
        found += [(days * 0.8, "off_bus", 5)]
    if number % 61 == 13:
        found += [(days * 0.5, "uncontained", 1), (days * 0.5 + 0.02, "boot", 0)]
    if number % 97 == 29:
        found += [(days * 0.6, "remap", 3), (days * 0.7, "remap_failed", 3)]
    if number % 45 == 3:
        found += [(chance.uniform(1, days), "contained", 4), (chance.uniform(1, days), "remap", 4)]
    if number % 125 == 42:  # a lemon
        for day in range(2, days - 1, 3):
            found += [(day + 0.3, chance.choice(["ecc", "gsp", "uncontained"]), 6), (day + 0.4, "boot", 0)]
    if number % 110 == 17:
        found += [(days * 0.4, "link", 0), (days * 0.4 + 0.5, "boot", 0)]
    if number % 70 == 20:
        found += [(days * 0.55, "storm", 7)]
    return sorted(found)


def lines(number: int, days: int, chatter: int) -> Iterator[str]:
    """The kernel's log of a node: ``chatter`` lines of others in all, evenly spread, and what befalls it."""
    chance = random.Random(f"chatter of {number}")
    node, step = node_name(number), days * 86_400.0 / max(1, chatter)
    due = [(0.0, "boot", 0), *((day * 86_400, what, gpu) for day, what, gpu in faults(number, days))]
    for place in range(chatter):
        now = place * step
        while due and due[0][0] <= now:
            yield from _said(number, node, *due.pop(0), chance)
        text = CHATTER[chance.randrange(len(CHATTER))].format(n=chance.randrange(250), h=chance.randrange(1 << 27))
        yield f"{_stamp(now)} {node} kernel: {text}"


def _said(number: int, node: str, at: float, what: str, gpu: int, chance: random.Random) -> Iterator[str]:
    pci, n = f"0000:{BUSES[gpu]}:00", chance.randrange(1000, 60_000)
    head = f"{_stamp(at)} {node} kernel: "
    if what == "boot":
        yield f"{head}Linux version 6.8.0-45-generic (buildd@lcy02) #45-Ubuntu SMP"
        yield f"{head}{LOADED}"
        return
    yield f"{head}NVRM: GPU at PCI:{pci}: {uuid(number, gpu)}"
    yield f"{head}NVRM: GPU Board Serial Number: {serial(number, gpu)}"
    if what == "storm":
        for repeat in range(5_000):
            yield f"{_stamp(at + repeat * 0.02)} {node} kernel: NVRM: {STORM.format(pci=pci, n=n)}"
        return
    yield f"{head}NVRM: {(APP if what == 'app' else KINDS[what]).format(pci=pci, n=n)}"


def _stamp(seconds: float) -> str:
    return (START + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S.%f+00:00")


def write(folder: Path, number: int, days: int, chatter: int) -> int:
    """One node's log as a file of the folder; its bytes."""
    path = folder / f"{node_name(number)}.log"
    with path.open("w", encoding="utf-8") as out:
        out.writelines(f"{line}\n" for line in lines(number, days, chatter))
    return path.stat().st_size
