"""Which processes belong to a unit of the system's systemd: read from /proc, which any user may do."""

from pathlib import Path

from agent.replicas.identity import PROC, Identity, pids, raw, stat


def belongs(pid: int, unit: str, proc: Path = PROC) -> bool:
    """Whether a process is in this unit: below slices and nothing else, for a container's units may have any name."""
    text = raw(f"{proc}/{pid}/cgroup") or b""
    for line in text.decode(errors="replace").splitlines():
        parts = line.split(":", 2)[-1].split("/")[1:]
        if unit in parts and all(part.endswith(".slice") for part in parts[: parts.index(unit)]):
            return True
    return False


def processes(unit: str) -> tuple[int, ...]:
    """Its living processes."""
    found = []
    for pid in pids():
        seen = stat(pid) if belongs(pid, unit) else None
        if seen is not None and seen.state not in "ZX":
            found.append(pid)
    return tuple(sorted(found))


def leader(unit: str, boot: str) -> Identity | None:
    """Its main process: of those that lead a session, which systemd makes it do, the first that was started."""
    led = [(seen.start_s, pid) for pid in processes(unit) if (seen := stat(pid)) is not None and seen.session == pid]
    return Identity(min(led)[1], min(led)[0], boot) if led else None
