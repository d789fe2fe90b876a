"""Who serves on these GPUs: from the processes that the driver lists to the servers that they belong to.

A server is the nearest of a GPU process and its ancestors whose command line names an engine. Workers of one server
(its tensor-parallel ranks) make one replica over all their GPUs. Only a port of such a server is ever asked: bytes
that are not meant for it can end a training job (rendezvous stores and NCCL's sockets listen, too). Nothing is
guessed: a server whose ports may not be read is *hidden*.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import PurePath

import msgspec

from agent.adapters.adapter import Adapter
from agent.adapters.engines import by_command, flag
from agent.observed.owner import owner_of
from agent.observed.processes import Address, Process, Processes
from vocab.observations import Owner

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


class Finder:
    """Looks at the process table. Blocking: run it beside the loop."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes

    def find(self, listed: Mapping[str, Collection[int]], ours: frozenset[int]) -> tuple[Server, ...]:
        """The servers behind the processes that the driver lists, by GPU; what leads or is in ``ours`` is left out."""
        gpus_of: dict[int, set[str]] = {}
        for gpu, pids in listed.items():
            for pid in pids:
                gpus_of.setdefault(pid, set()).add(gpu)
        heads: dict[int, tuple[Process, Adapter, list[int]]] = {}
        for pid in sorted(gpus_of):
            if found := self._head(pid, ours):
                below, head, engine = found
                heads.setdefault(head.pid, (head, engine, []))[2].extend((*below, pid))
        return tuple(
            self._server(head, engine, pids, tuple(gpu for gpu in listed if _holds(gpu, pids, gpus_of)))
            for head, engine, pids in heads.values()
        )

    def lives(self, process: Process) -> bool:
        """Whether this very process is still there."""
        now = self._processes.look(process.pid)
        return now is not None and now.start_s == process.start_s

    def _head(self, pid: int, ours: frozenset[int]) -> tuple[list[int], Process, Adapter] | None:
        """The server that a GPU process belongs to, and what stands between the two; None if there is none, or ours."""
        process = self._processes.look(pid)
        if process is None or process.session in ours:
            return None
        lineage = self._processes.lineage(process)
        if any(each.pid in ours for each in lineage):
            return None
        for place, each in enumerate(lineage):
            engine = by_command(self._words(each.pid))
            if engine is not None:
                return [one.pid for one in lineage[1:place]], each, engine
        return None

    def _server(self, head: Process, engine: Adapter, pids: Sequence[int], gpus: tuple[str, ...]) -> Server:
        words, processes = self._words(head.pid), self._processes
        said = flag(words, "--port")
        port = int(said) if said and said.isdigit() else engine.default_port
        hostname = processes.variable(head.pid, "HOSTNAME")
        return Server(
            process=head,
            owner=owner_of(processes.cgroup(head.pid), head.uid, PurePath(words[0]).name, hostname),
            engine=engine,
            gpus=gpus,
            pids=tuple(dict.fromkeys((head.pid, *sorted(pids)))),
            urls=self._urls(head, port),
            model=flag(words, *engine.model_flags) or _positional(words),
            port=port,
        )

    def _urls(self, head: Process, port: int | None) -> tuple[str, ...] | None:
        """Where it can be asked: on the port that it was given, if it listens there, else on all of its own."""
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


def _is_wrapper(word: str) -> bool:
    return PurePath(word).name.rstrip("0123456789.") in WRAPPERS


def _positional(words: Sequence[str]) -> str | None:
    """``vllm serve MODEL``."""
    rest = words[2:3] if words[1:2] == ("serve",) else ()
    return rest[0] if rest and not rest[0].startswith("-") else None
