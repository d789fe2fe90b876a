"""Which boot this is, and when it began, from /proc."""

from pathlib import Path


def boot_id(proc: Path = Path("/proc")) -> str:
    """The kernel's random id of this boot."""
    return (proc / "sys/kernel/random/boot_id").read_text().strip()


def boot_at(proc: Path = Path("/proc")) -> float | None:
    """Seconds since the epoch, as the kernel reckons it (``btime``), or None if it does not say."""
    for line in (proc / "stat").read_text().splitlines():
        if line.startswith("btime "):
            return float(line.split()[1])
    return None
