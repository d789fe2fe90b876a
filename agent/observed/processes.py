"""What /proc tells of other people's processes: kin, owner, and the ports that they listen on.

What may not be read is None, never empty: the links of another user's descriptors need CAP_SYS_PTRACE. Without it a
port still is known that the command line names, if a socket of that user listens there in that network. Reading a
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


class Socket(msgspec.Struct, frozen=True):
    """A socket that listens. ``inode`` is unique on the machine, ``uid`` is who opened it."""

    address: Address
    uid: int
    inode: str


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

    def lineage(self, pid: int, known: dict[int, Process | None]) -> list[Process]:
        """The process and its ancestors within its session, nearest first; never the machine's first process.

        Workers share the session of the server that started them; a shell or service manager above has its own.
        ``known`` holds what was looked at before in the same round.
        """
        found: list[Process] = []
        while pid > 1:
            if pid not in known:
                known[pid] = self.look(pid)
            process = known[pid]
            if process is None or process in found or (found and process.session != found[0].session):
                break
            found.append(process)
            pid = process.parent
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
        inodes = self._inodes(pid)
        if inodes is None:
            return None
        found = {each.address for each in self._listening(str(pid)) if each.inode in inodes}
        return tuple(sorted(found, key=lambda address: (address.port, address.host)))

    def heard_at(self, process: Process, port: int) -> tuple[Address, ...]:
        """The addresses at which a socket of its user listens on this port, in its network."""
        found = self._listening(str(process.pid))
        return tuple(each.address for each in found if each.address.port == port and each.uid == process.uid)

    def url(self, pid: int, address: Address) -> str | None:
        """How this agent reaches an address of that process; None if it cannot.

        In a network of its own (a container's) the loopback is not ours: asking our own port of that number could
        reach somebody else, so the container's own address is taken.
        """
        host = address.host.removeprefix("::ffff:")
        if self._shares_our_network(pid, address):
            host = "127.0.0.1" if address.host in _ANY else host
        elif address.host in _ANY:
            host = next(iter(self._own_addresses(pid)), "")
        elif address.host in _LOOPBACK:
            host = ""
        if not host:
            return None
        return f"http://[{host}]:{address.port}" if ":" in host else f"http://{host}:{address.port}"

    # -- files ------------------------------------------------------------------------------------------

    def _text(self, pid: int | str, name: str) -> str:
        try:
            return (self._root / str(pid) / name).read_text(errors="replace")
        except OSError:
            return ""

    def _listening(self, pid: str) -> tuple[Socket, ...]:
        """The listening sockets of its network."""
        return tuple(each for name in ("net/tcp", "net/tcp6") for each in _sockets(self._text(pid, name)))

    def _inodes(self, pid: int) -> frozenset[str] | None:
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

    def _shares_our_network(self, pid: int, address: Address) -> bool:
        """Whether the socket that listens there stands in our own network's table, too."""
        theirs = {each.inode for each in self._listening(str(pid)) if each.address == address}
        return bool(theirs & {each.inode for each in self._listening("self")})

    def _own_addresses(self, pid: int) -> list[str]:
        """The IPv4 addresses of its network, without the loopback."""
        lines = self._text(pid, "net/fib_trie").splitlines()
        found = [a.rpartition("|--")[2].strip() for a, b in pairwise(lines) if "|--" in a and "/32 host LOCAL" in b]
        return [address for address in dict.fromkeys(found) if not address.startswith("127.")]


def _sockets(table: str) -> list[Socket]:
    """The listening sockets in the text of a net/tcp or net/tcp6 file."""
    rows = [line.split() for line in table.splitlines() if f" {LISTEN} " in line]  # of thousands of connections
    return [Socket(_address(row[1]), int(row[7]), row[9]) for row in rows if len(row) > 9 and row[3] == LISTEN]


def _address(text: str) -> Address:
    """``0100007F:1F40``: words in the machine's byte order, the port in that of the network."""
    host, _, port = text.partition(":")
    raw = b"".join(int(host[at : at + 8], 16).to_bytes(4, "little") for at in range(0, len(host), 8))
    family = socket.AF_INET if len(raw) == 4 else socket.AF_INET6
    return Address(socket.inet_ntop(family, raw), int(port, 16))
