"""The process that reads the host: ``python -m agent.sources.host_child OPTIONS``.

A file of sysfs can hang as a driver call does (a network card whose firmware does not answer), and a thread that hangs
keeps its whole process. So the reads are here and not in the agent, a thread for each group; the agent hears what they
find as JSON lines (see Said in host) and what hangs by its silence. It ends when its standard input does, that is with
the agent. It stays small: what it imports is the standard library alone, for a process that reads files needs no more.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from agent.sources.host_machine import read_machine
from agent.sources.host_ports import absent, find_ports
from agent.sources.processes import Processes

GROUPS = ("machine", "ethernet", "processes")  # and one for each RDMA port


class Options(NamedTuple):
    """The one argument of the process, as JSON (argparse would cost a megabyte): paths, period, ports to be up."""

    node: str
    proc: str = "/proc"
    sys: str = "/sys"
    state_dir: str = "/"
    period_s: float = 10.0
    ports: tuple[str, ...] = ()


Sight = dict[str, Any]  # an observation (HostSample or ProcessSeen) as it goes over the pipe
Look = Callable[[], Iterable[Sight] | None]  # None: what it looks at is gone


class Mouth:
    """Lines to the agent, whole, from any thread."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._lock = threading.Lock()

    def say(self, group: str, seen: Iterable[Sight] = (), *, gone: bool = False) -> None:
        """One look of one group. Writes it all; the agent always reads, so this waits only while that is stopped."""
        rest = memoryview(json.dumps({"group": group, "seen": list(seen), "gone": gone}).encode() + b"\n")
        with self._lock:
            while rest:
                rest = rest[os.write(self._file, rest) :]


class Host:
    """The groups of reads, each in a thread of its own; every RDMA port is one, for each is a card of its own."""

    def __init__(self, options: Options, mouth: Mouth) -> None:
        self._options = options
        self._mouth = mouth
        self._proc, self._sys = Path(options.proc), Path(options.sys)
        self._processes = Processes(self._proc)
        self._ports: set[str] = set()  # that have a thread

    def start(self) -> None:
        """Begin to read."""
        for group, look in zip(GROUPS, (self._machine, self._ethernet, self._hung), strict=True):
            self._begin(group, look)

    def _begin(self, group: str, look: Look) -> None:
        threading.Thread(target=self._keep, args=(group, look), name=group, daemon=True).start()

    def _keep(self, group: str, look: Look) -> None:
        """Look and tell until there is nothing to look at."""
        self._mouth.say(group)  # from now on its silence says that it hangs
        while True:
            try:
                seen = look()
            except OSError as error:  # it is not read this time
                sys.stderr.write(f"corral-agent: {group} of the host: {error}\n")
            else:
                self._mouth.say(group, seen or (), gone=seen is None)
                if seen is None:
                    return
            time.sleep(self._options.period_s)

    def _told(self, kind: str, **seen: Any) -> Sight:
        return {"obs": kind, "at": time.time(), "node": self._options.node, **seen}

    def _machine(self) -> Iterable[Sight]:
        return (self._told("host", readings=read_machine(self._proc, Path(self._options.state_dir))),)

    def _ethernet(self) -> Iterable[Sight]:
        """Plain ports; those of RDMA devices that are new get a thread."""
        named, found = self._options.ports, find_ports(self._sys)
        for name, port in found.items():
            if port.is_rdma and name not in self._ports:
                self._ports.add(name)
                self._begin(f"port {name}", partial(self._rdma, name))
        devices = {name: port.read(wanted=name in named) for name, port in found.items() if not port.is_rdma}
        devices |= absent(found, named)
        return (self._told("host", devices=devices),) if devices else ()

    def _rdma(self, name: str) -> Iterable[Sight] | None:
        port = find_ports(self._sys).get(name)
        if port is None:
            self._ports.discard(name)
            return None
        return (self._told("host", devices={name: port.read(wanted=name in self._options.ports)}),)

    def _hung(self) -> Iterable[Sight]:
        count, seen = self._processes.look()
        told = (self._told("process", **one._asdict()) for one in seen)
        return (self._told("host", readings={"nvidia_d_state": count}), *told)


def _end_on_defect(args: threading.ExceptHookArgs) -> None:
    """A thread that died of a defect of ours would leave its group unread: end, so that the agent starts anew."""
    sys.__excepthook__(args.exc_type, args.exc_value or args.exc_type(), args.exc_traceback)
    os._exit(2)


def main() -> int:
    """The process."""
    options = Options(**json.loads(sys.argv[1]))
    mouth = Mouth(os.dup(1))
    os.dup2(2, 1)
    threading.excepthook = _end_on_defect
    Host(options, mouth).start()
    while os.read(0, 4096):
        pass
    return 0


if __name__ == "__main__":
    os._exit(main())  # not sys.exit: a thread may be inside the kernel
