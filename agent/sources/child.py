"""The inside of a child process that a driver's library lives in: its way to the agent, and how it ends.

It ends when its standard input does, that is with the agent; a thread that hangs in the driver must not keep
it. It writes frames to its standard output; whatever a library prints goes to the log.
"""

import faulthandler
import os
import sys
import threading
from collections.abc import Callable

from agent.sources.frames import Failed, Frame, Stacks, encode
from vocab.errors import SourceDown

STACKS = "stacks"  # the line that asks a child where its threads stand
MOST_STACK_BYTES = 6000


class CallFailed(SourceDown):
    """A call returned an error; ``error`` is its name in NVML or DCGM, without the prefix."""

    def __init__(self, call: str, error: str) -> None:
        super().__init__(f"{call}: {error}")
        self.error = error


class Outbox:
    """Frames to the agent, whole, from any thread."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._lock = threading.Lock()

    def send(self, frame: Frame) -> None:
        """Write it all; the agent always reads, so this waits only while the agent is stopped."""
        raw = memoryview(encode(frame))
        with self._lock:
            while raw:
                raw = raw[os.write(self._file, raw) :]


def serve(work: Callable[[Outbox], None], hear: Callable[[str], None] = lambda _: None) -> int:
    """Do the work until it fails or the agent ends; ``hear`` gets the lines that the agent writes. The exit code."""
    pipe = os.dup(1)
    os.dup2(2, 1)  # whatever the driver's library prints belongs in the log
    outbox = Outbox(pipe)
    threading.excepthook = _end_on_defect
    threading.Thread(target=_listen, args=(hear, outbox), name="parent", daemon=True).start()
    try:
        work(outbox)
    except CallFailed as failed:
        outbox.send(Failed(failed.error))
    except SourceDown as error:
        sys.stderr.write(f"corral-agent: {error}\n")
    return 1


def _listen(hear: Callable[[str], None], outbox: Outbox) -> None:
    """Standard input ends when the agent does."""
    heard = b""
    while found := os.read(0, 4096):
        *lines, heard = (heard + found).split(b"\n")
        for line in lines:
            if line.decode() == STACKS:
                outbox.send(Stacks(_stacks()))
            else:
                hear(line.decode())
    os._exit(0)


def _stacks() -> str:
    """Of all threads; one inside the driver stands at the call that it made."""
    with os.fdopen(os.memfd_create("stacks"), "w+b") as file:
        faulthandler.dump_traceback(file, all_threads=True)
        file.seek(0)
        return file.read(MOST_STACK_BYTES).decode(errors="replace")


def _end_on_defect(args: threading.ExceptHookArgs) -> None:
    """A thread that died of a defect of ours would leave its GPU unread: end, so that the agent starts anew."""
    sys.__excepthook__(args.exc_type, args.exc_value or args.exc_type(), args.exc_traceback)
    os._exit(2)
