"""Who is on these GPUs: from the processes that the driver lists to the servers that they belong to, and the rest.

A server is the nearest of a GPU process and its ancestors whose command line names an engine. Workers of one server
(its tensor-parallel ranks) make one replica over all their GPUs. Only a port of such a server is ever asked: bytes
that are not meant for it can end a training job (rendezvous stores and NCCL's sockets listen, too). Nothing is
guessed: a server whose ports may not be read is *hidden*. What belongs to no server is the *work* of its owner, but for
what the agent itself has started and the programs that stand beside any work.
"""

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import PurePath

import msgspec

from agent.adapters.adapter import Adapter
from agent.adapters.engines import by_command, flag
from agent.observed.owner import owner_of
from agent.observed.processes import Address, Process, Processes
from agent.observed.work import Work
from vocab.observations import Owner

DOORS_S = 60.0  # a server keeps its port for life
MOST_PORT, PORT_DIGITS = 65_535, 5
GONE = "?"  # the program of a process that ended while it was looked at
BESIDE = ("nvidia-", "nv-hostengine", "nvvs", "dcgm-exporter", "Xorg", "Xwayland", "gnome-shell")  # is nobody's work
WRAPPERS = ("python", "bash", "sh", "nice", "env", "numactl", "taskset")  # what may stand before a program's name


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """An engine's process and the GPUs that it and its children hold.

    ``model`` and ``port`` are what its command line says. ``urls``: where it listens (none: it still starts, or
    closes); None: that may not be read.
    """

    process: Process
    owner: Owner
    engine: Adapter
    gpus: tuple[str, ...]
    pids: tuple[int, ...]  # itself, then those that the driver lists and what stands between
    urls: tuple[str, ...] | None
    model: str | None = None
    port: int | None = None


class Found(msgspec.Struct, frozen=True):
    """What one look at the process table shows."""

    servers: tuple[Server, ...] = ()
    works: tuple[Work, ...] = ()  # one a process


class Finder:
    """Looks at the process table. Blocking: run it beside the loop."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes
        self._engines: dict[Process, Adapter | None] = {}  # by their command lines, which stay
        self._doors: dict[Process, tuple[float, tuple[str, ...]]] = {}  # where a server was found to listen, and when

    def find(self, listed: Mapping[str, Collection[int]], ours: frozenset[int], now: float) -> Found:
        """Who is behind the processes that the driver lists, by GPU; what leads or is in ``ours`` is left out.

        ``now`` (monotonic) tells how old what was found before is.
        """
        gpus_of: dict[int, set[str]] = {}
        for gpu, pids in listed.items():
            for pid in pids:
                gpus_of.setdefault(pid, set()).add(gpu)
        heads: dict[int, tuple[Process, Adapter, list[int]]] = {}
        known: dict[int, Process | None] = {}
        works = []
        for pid in sorted(gpus_of):
            lineage = self._processes.lineage(pid, known)
            if not lineage or _is_ours(lineage, ours):
                continue
            if found := self._head(lineage):
                below, head, engine = found
                heads.setdefault(head.pid, (head, engine, []))[2].extend((*below, pid))
            elif work := self._work(lineage[0], tuple(gpu for gpu in listed if gpu in gpus_of[pid])):
                works.append(work)
        self._engines = {process: self._engines[process] for process in known.values() if process in self._engines}
        servers = tuple(
            self._server(head, engine, pids, tuple(gpu for gpu in listed if _holds(gpu, pids, gpus_of)), now)
            for head, engine, pids in heads.values()
        )
        return Found(servers, tuple(works))

    def doubt(self, process: Process) -> None:
        """Nobody answers where it was found to listen: look anew."""
        self._doors.pop(process, None)

    def _head(self, lineage: Sequence[Process]) -> tuple[list[int], Process, Adapter] | None:
        """The server that a GPU process belongs to, and what stands between the two; None if there is none."""
        for place, each in enumerate(lineage):
            if each not in self._engines:
                self._engines[each] = by_command(self._words(each.pid))
            engine = self._engines[each]
            if engine is not None:
                return [one.pid for one in lineage[1:place]], each, engine
        return None

    def _work(self, process: Process, gpus: tuple[str, ...]) -> Work | None:
        """What a process that belongs to no server does there: its owner's work, or nobody's."""
        words = self._words(process.pid) or self._processes.command(process.pid)
        program = PurePath(words[0]).name if words else ""
        if not program or program.startswith(BESIDE):
            return None
        return Work(owner=self._owner(process, program), session=process.session, gpus=gpus, pids=(process.pid,))

    def _owner(self, process: Process, program: str) -> Owner:
        hostname = self._processes.variable(process.pid, "HOSTNAME")
        return owner_of(self._processes.cgroup(process.pid), process.uid, program, hostname)

    def _server(self, head: Process, engine: Adapter, pids: Sequence[int], gpus: tuple[str, ...], now: float) -> Server:
        words = self._words(head.pid)
        said = (flag(words, "--port", "--listen") or "").rpartition(":")[2]
        port = _port(said) or engine.default_port
        return Server(
            process=head,
            owner=self._owner(head, PurePath(words[0]).name if words else GONE),
            engine=engine,
            gpus=gpus,
            pids=tuple(dict.fromkeys((head.pid, *sorted(pids)))),
            urls=self._urls(head, port, now),
            model=flag(words, *engine.model_flags) or _positional(words),
            port=port,
        )

    def _urls(self, head: Process, port: int | None, now: float) -> tuple[str, ...] | None:
        """Where it can be asked. Found once a minute: the kernel takes long over its table of connections."""
        found_at, known = self._doors.get(head, (now, ()))
        if known and now - found_at < DOORS_S:
            return known
        urls = self._look_for_doors(head, port)
        self._doors = {each: door for each, door in self._doors.items() if each in self._engines}
        self._doors[head] = (now, urls or ())
        return urls

    def _look_for_doors(self, head: Process, port: int | None) -> tuple[str, ...] | None:
        """On the port that it was given, if it listens there, else on all of its own."""
        addresses = self._processes.listens(head.pid)
        if addresses is None:  # not ours to see; but what its command line says can be checked
            wanted: Sequence[Address] = self._processes.heard_at(head, port) if port else ()
            if not wanted:
                return None
        else:
            wanted = [each for each in addresses if each.port == port] or addresses
        urls = (self._processes.url(head.pid, address) for address in wanted)
        return tuple(dict.fromkeys(url for url in urls if url is not None))

    def _words(self, pid: int) -> tuple[str, ...]:
        """The command line from its program on, without interpreters, wrappers and their flags."""
        words = list(self._processes.command(pid))
        while words and _is_wrapper(words[0]):
            words.pop(0)
            while words and (words[0].startswith("-") or words[0].isdigit()):
                words.pop(0)
        return tuple(words)


def _holds(gpu: str, pids: Sequence[int], gpus_of: Mapping[int, Collection[str]]) -> bool:
    return any(gpu in gpus_of.get(pid, ()) for pid in pids)


def _is_ours(lineage: Sequence[Process], ours: frozenset[int]) -> bool:
    """Whether it is of a replica of ours, or this agent started it (an active check)."""
    return lineage[-1].parent == os.getpid() or any(each.pid in ours or each.session in ours for each in lineage)


def _is_wrapper(word: str) -> bool:
    return PurePath(word).name.rstrip("0123456789.") in WRAPPERS


def _port(said: str) -> int | None:
    """The words are a stranger's: anything may stand there."""
    port = int(said) if said.isdecimal() and len(said) <= PORT_DIGITS else 0
    return port if 0 < port <= MOST_PORT else None


def _positional(words: Sequence[str]) -> str | None:
    """``vllm serve MODEL``."""
    rest = words[2:3] if words[1:2] == ("serve",) else ()
    return rest[0] if rest and not rest[0].startswith("-") else None
