"""The process that reads the host: ``python -m agent.sources.host_child OPTIONS``.

A file of sysfs can hang as a driver call does (a network card whose firmware does not answer), and a thread that hangs
keeps its whole process. So the reads are here and not in the agent, a thread for each group; the agent hears what they
find as JSON lines and what hangs by its silence. It ends when its standard input does, that is with the agent.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from agent.sources.host_machine import read_machine
from agent.sources.host_ports import read_ports
from agent.sources.processes import Processes
from vocab.observations import HostSample, ProcessSeen

GROUPS = ("machine", "ports", "processes")


class Said(msgspec.Struct, frozen=True):
    """One look of one group of reads."""

    group: str
    seen: tuple[HostSample | ProcessSeen, ...] = ()


class Options(msgspec.Struct, frozen=True):
    """The one argument of the process, as JSON (argparse would cost a megabyte): paths, period, ports to be up."""

    node: str
    proc: str = "/proc"
    sys: str = "/sys"
    state_dir: str = "/"
    period_s: float = 10.0
    ports: tuple[str, ...] = ()


Look = Callable[[], Iterator[HostSample | ProcessSeen]]


def looks(options: Options) -> dict[str, Look]:
    """What each group reads."""
    node, proc, sys_, state_dir = options.node, Path(options.proc), Path(options.sys), Path(options.state_dir)
    processes = Processes(proc)

    def machine() -> Iterator[HostSample]:
        yield HostSample(at=time.time(), node=node, readings=read_machine(proc, state_dir))

    def ports() -> Iterator[HostSample]:
        devices = read_ports(sys_, options.ports)
        if devices:
            yield HostSample(at=time.time(), node=node, devices=devices)

    def hung() -> Iterator[HostSample | ProcessSeen]:
        at = time.time()
        count, seen = processes.look(node, at)
        yield HostSample(at=at, node=node, readings={"nvidia_d_state": count})
        yield from seen

    return dict(zip(GROUPS, (machine, ports, hung), strict=True))


class Mouth:
    """Lines to the agent, whole, from any thread."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._lock = threading.Lock()

    def say(self, group: str, look: Look, period_s: float) -> None:
        """Look and tell, for ever."""
        while True:
            try:
                seen = tuple(look())
            except OSError as error:  # the group is not read this time; the agent hears it by the silence
                sys.stderr.write(f"corral-agent: {group} of the host: {error}\n")
            else:
                self._write(msgspec.json.encode(Said(group, seen)) + b"\n")
            time.sleep(period_s)

    def _write(self, line: bytes) -> None:
        rest = memoryview(line)
        with self._lock:
            while rest:
                rest = rest[os.write(self._file, rest) :]


def _end_on_defect(args: threading.ExceptHookArgs) -> None:
    """A thread that died of a defect of ours would leave its group unread: end, so that the agent starts anew."""
    sys.__excepthook__(args.exc_type, args.exc_value or args.exc_type(), args.exc_traceback)
    os._exit(2)


def main() -> int:
    """The process."""
    options = msgspec.json.decode(sys.argv[1], type=Options)
    mouth = Mouth(os.dup(1))
    os.dup2(2, 1)
    threading.excepthook = _end_on_defect
    for group, look in looks(options).items():
        threading.Thread(target=mouth.say, args=(group, look, options.period_s), name=group, daemon=True).start()
    while os.read(0, 4096):
        pass
    return 0


if __name__ == "__main__":
    os._exit(main())  # not sys.exit: a thread may be inside the kernel
