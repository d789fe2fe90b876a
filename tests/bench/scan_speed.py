"""How fast ``corral scan`` is: lines/s and peak memory on a log of a million lines, 1 % of them the driver's; and on
storms, where every line is the driver's: of twice the size, to show that the cost of a line stays the same.

    python tests/bench/scan_speed.py [LINES]

Each mode runs in a process of its own, so that its peak memory is its own. Two peers read the same log in the same
minutes: ``grep -c NVRM``, which only counts lines, and a loop in Python with one regular expression a line, which
counts Xids by address and number. Neither knows of times, nodes, records of several lines, copies, folds or causes.
"""

import io
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from corral.scan import scan  # noqa: E402  run as a program, from anywhere

SHARE = 100  # one line in so many is the driver's
XIDS = (13, 31, 43, 45, 94)
STORMS = (100_000, 200_000)
TEXTS = 29  # distinct lines of a storm, as a fleet reported it: 800,000 entries of one GPU in six hours


def write(path: Path, count: int) -> None:
    """A syslog of two hours and three quarters, the same at each run."""
    dice = random.Random(1)
    with path.open("w") as log:
        for number in range(count):
            seconds = number * 0.01
            stamp = time.strftime("%b %d %H:%M:%S", time.gmtime(1_700_000_000 + seconds))
            if number % SHARE:
                text = f'audit: type=1400 audit({number}): apparmor="ALLOWED" operation="open" name="/proc/{number}"'
            else:
                text = (
                    f"NVRM: Xid (PCI:0000:{dice.randrange(8):02x}:00): {dice.choice(XIDS)}, "
                    f"pid={dice.randrange(100, 200)}, name=python, Ch {dice.randrange(16):08x}"
                )
            log.write(f"{stamp} node kernel: [{seconds:12.6f}] {text}\n")


def write_storm(path: Path, count: int) -> None:
    """One GPU that prints the same 29 lines for ever, 37 a second."""
    with path.open("w") as log:
        for number in range(count):
            kind = number % TEXTS
            log.write(
                f"[{1000 + number / 37:.6f}] NVRM: Xid (PCI:0000:b2:00): 95, pid={100 + kind}, name=app, "
                f"Uncontained: LTC TAG (0x{kind:x}, 0xb). RST: Yes, D-RST: No\n"
            )


def counted(path: Path) -> int:
    """How many lines the events of a scan stand for."""
    out = io.StringIO()
    scan([str(path)], "json", None, None, None, out, io.StringIO())
    return sum(json.loads(line)["count"] for line in out.getvalue().split("\n")[:-1])


SCAN = """
import resource, sys
from corral.scan import scan
scan([sys.argv[1]], sys.argv[2], None, None, None, open("/dev/null", "w"), sys.stderr)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""
LOOP = """
import re, resource, sys
from collections import Counter
XID = re.compile(r"NVRM: Xid \\(PCI:([0-9a-fA-F:.]+)\\): (\\d+)")
seen = Counter(found.groups() for line in open(sys.argv[1], errors="replace") if (found := XID.search(line)))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def spent(*command: str) -> tuple[float, str]:
    """Seconds of processor time that a program takes, its start with it, and what it prints."""
    start = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    return end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime, done.stdout


def measure(mode: str, path: Path) -> tuple[float, float]:
    """Seconds and peak MiB of one scan."""
    seconds, peak = spent(sys.executable, "-c", SCAN, str(path), mode)
    return seconds, float(peak)


def peers(path: Path, count: int, scanned_s: float) -> None:
    """The peers on the same log, and how long the scan takes beside them."""
    seconds, _ = spent("grep", "-c", "NVRM", str(path))
    print(f"grep   {count / seconds:>10.0f} lines/s; the scan takes {scanned_s / seconds:.1f} times as long")
    seconds, peak = spent(sys.executable, "-c", LOOP, str(path))
    print(
        f"loop   {count / seconds:>10.0f} lines/s, peak {float(peak):.0f} MiB; "
        f"the scan takes {scanned_s / seconds:.1f} times as long"
    )


def main(count: int) -> None:
    """Write the log, scan it in each mode, print a line each."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "kern.log"
        write(path, count)
        print(f"{count} lines, {path.stat().st_size / 1e6:.0f} MB, one in {SHARE} is the driver's")
        for mode in ("parse", "json", "text"):
            seconds, peak = measure(mode, path)
            print(f"{mode:<6} {count / seconds:>10.0f} lines/s of processor time, peak {peak:.0f} MiB")
        peers(path, count, seconds)
        for size in STORMS:
            write_storm(path, size)
            seconds, peak = measure("json", path)
            print(
                f"storm of {size} lines, {counted(path)} counted: {size / seconds:.0f} lines/s of processor time, "
                f"peak {peak:.0f} MiB"
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
