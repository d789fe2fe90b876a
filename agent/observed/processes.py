"""What /proc tells of other people's processes: kin, owner, and the ports that they listen on.

What may not be read is None, never empty: the links of another user's descriptors need CAP_SYS_PTRACE. Reading a
command line or an environment can hang with the process (it takes the lock of its memory), so all of this runs
beside the agent's loop, never in it.
"""

import os
import re
import socket
from itertools import pairwise
from pathlib import Path

import msgspec

LISTEN = "0A"  # the state in /proc/PID/net/tcp
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
MOST_DESCRIPTORS = 65_536
_ANY = frozenset({"0.0.0.0", "::", "::ffff:0.0.0.0"})  # noqa: S104  # what others listen on
_LOOPBACK = frozenset({"127.0.0.1", "::1", "::ffff:127.0.0.1"})


class Process(msgspec.Struct, frozen=True, kw_only=True):
    """One process as it was found; pid and start time (seconds since boot) together are its identity."""

    pid: int
    start_s: float
    parent: int
    session: int
    uid: int | None


class Address(msgspec.Struct, frozen=True):
    """Where a socket listens, within the process's own network."""

    host: str
    port: int


class Processes:
    """The process table under ``root``. A process that has gone is None everywhere."""

    def __init__(self, root: Path = Path("/proc")) -> None:
        self._root = root

    def look(self, pid: int) -> Process | None:
        """Its kin and user. A zombie has ended."""
        try:
            stat = (self._root / str(pid) / "stat").read_text()
        except OSError:
            return None
        fields = stat.rpartition(")")[2].split()  # the name before it may hold anything
        if fields[0] in "ZX":
            return None
        return Process(
            pid=pid,
            start_s=int(fields[19]) / TICKS_PER_S,
            parent=int(fields[1]),
            session=int(fields[3]),
            uid=self._uid(pid),
        )

    def _uid(self, pid: int) -> int | None:
        found = re.search(r"^Uid:\s+(\d+)", self._text(pid, "status"), re.MULTILINE)
        return int(found[1]) if found else None

    def lineage(self, process: Process) -> list[Process]:
        """The process and its ancestors within its session, nearest first; never the machine's first process.

        Workers share the session of the server that started them; a shell or service manager above has its own.
        """
        found = [process]
        while (parent := self.look(found[-1].parent)) is not None and parent.pid > 1:
            if parent.session != process.session or parent in found:
                break
            found.append(parent)
        return found

    def cgroup(self, pid: int) -> str:
        """The text of its cgroup file; empty if it cannot be read."""
        return self._text(pid, "cgroup")

    def command(self, pid: int) -> tuple[str, ...]:
        """Its command line."""
        return tuple(word for word in self._text(pid, "cmdline").rstrip("\0").split("\0") if word)

    def variable(self, pid: int, name: str) -> str | None:
        """A variable of the environment that it was started with; None if unset or not to be read."""
        start = f"{name}="
        words = self._text(pid, "environ").split("\0")
        return next((word[len(start) :] for word in words if word.startswith(start)), None)

    def listens(self, pid: int) -> tuple[Address, ...] | None:
        """The addresses on which it listens, lowest port first; None if its descriptors may not be read."""
        inodes = self._sockets(pid)
        if inodes is None:
            return None
        found = {
            address: None
            for name in ("net/tcp", "net/tcp6")
            for inode, address in _listening(self._text(pid, name))
            if inode in inodes
        }
        return tuple(sorted(found, key=lambda address: (address.port, address.host)))

    def url(self, pid: int, address: Address) -> str | None:
        """How this agent reaches an address of that process; None if it cannot.

        In a network of its own (a container's) the loopback is not ours: asking our own port of that number could
        reach somebody else, so the container's own address is taken.
        """
        ours, theirs = self._network("self"), self._network(str(pid))
        if theirs is None or ours is None:
            return None
        host = address.host.removeprefix("::ffff:")
        if theirs == ours:
            host = "127.0.0.1" if address.host in _ANY else host
        elif address.host in _ANY:
            host = next(iter(self._own_addresses(pid)), "")
        elif address.host in _LOOPBACK:
            host = ""
        if not host:
            return None
        return f"http://[{host}]:{address.port}" if ":" in host else f"http://{host}:{address.port}"

    # -- files ------------------------------------------------------------------------------------------

    def _text(self, pid: int, name: str) -> str:
        try:
            return (self._root / str(pid) / name).read_text(errors="replace")
        except OSError:
            return ""

    def _sockets(self, pid: int) -> frozenset[str] | None:
        """The inodes of its sockets."""
        found = set()
        try:
            links = list((self._root / str(pid) / "fd").iterdir())[:MOST_DESCRIPTORS]
        except PermissionError:
            return None
        except OSError:
            return frozenset()
        for link in links:
            try:
                target = str(link.readlink())
            except PermissionError:
                return None
            except OSError:
                continue  # closed since
            if target.startswith("socket:["):
                found.add(target[8:-1])
        return frozenset(found)

    def _network(self, pid: str) -> str | None:
        try:
            return str((self._root / pid / "ns" / "net").readlink())
        except OSError:
            return None

    def _own_addresses(self, pid: int) -> list[str]:
        """The IPv4 addresses of its network, without the loopback."""
        lines = self._text(pid, "net/fib_trie").splitlines()
        found = [a.rpartition("|--")[2].strip() for a, b in pairwise(lines) if "|--" in a and "/32 host LOCAL" in b]
        return [address for address in dict.fromkeys(found) if not address.startswith("127.")]


def _listening(table: str) -> list[tuple[str, Address]]:
    """(inode, address) of the listening sockets in the text of a net/tcp or net/tcp6 file."""
    rows = [line.split() for line in table.splitlines()[1:]]
    return [(row[9], _address(row[1])) for row in rows if len(row) > 9 and row[3] == LISTEN]


def _address(text: str) -> Address:
    """``0100007F:1F40``: words in the machine's byte order, the port in that of the network."""
    host, _, port = text.partition(":")
    raw = b"".join(int(host[at : at + 8], 16).to_bytes(4, "little") for at in range(0, len(host), 8))
    family = socket.AF_INET if len(raw) == 4 else socket.AF_INET6
    return Address(socket.inet_ntop(family, raw), int(port, 16))
