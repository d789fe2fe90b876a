"""Units in memory over real processes: what systemd is to a supervisor, without systemd."""

import asyncio
import os
import signal
import subprocess

from agent.adapters.adapter import Start
from agent.adapters.engines import adapter
from agent.replicas.launch import environment
from agent.replicas.record import Folder, ReplicaRecord, marks
from agent.replicas.units import Last
from tests.agent.replicas.node import FAKE
from vocab.errors import Refused, Unreachable
from vocab.observations import Exit


class ProcessUnits:
    """Starts fake replicas as children of the test; nobody but this can reap or signal them for the supervisor."""

    def __init__(self, run_dir) -> None:
        self.run_dir = run_dir
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.ended: dict[str, Last] = {}
        self.flags: tuple[str, ...] = ()
        self.did: list[str] = []
        self.refusal: str | None = None
        self.gone = False
        self.gate: asyncio.Event | None = None  # a start waits for it

    async def start(self, record: ReplicaRecord) -> int:
        if self.gate is not None:
            await self.gate.wait()
        if self.gone:
            raise Unreachable("the root helper does not answer")
        if self.refusal is not None:
            raise Refused(self.refusal)
        folder = Folder(self.run_dir, record.replica)
        start = Start(spec=record.spec, port=record.port, beat=str(folder.beat), cpu=False, program=FAKE)
        env = environment(record.spec, os.environ, marks(record.replica, folder.beat), cpu=False)
        argv = [*adapter(record.spec.engine).argv(start), *self.flags]
        self.did.append(f"start {record.replica}")
        process = subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.processes[record.replica] = process
        return process.pid

    async def end(self, replica: str, *, kill: bool) -> None:
        if self.gone:
            raise Unreachable("the root helper does not answer")
        self.did.append(f"{'kill' if kill else 'end'} {replica}")
        self.processes[replica].send_signal(signal.SIGKILL if kill else signal.SIGTERM)

    async def last(self, replica: str) -> Last | None:
        if self.gone:
            raise Unreachable("the root helper does not answer")
        if replica in self.ended:
            return self.ended[replica]
        status = self.processes[replica].poll()
        if status is None:
            return None
        return Last(Exit(code=status) if status >= 0 else Exit(signal=-status), "one line\nCUDA error: out of memory\n")

    async def clear(self, replica: str) -> None:
        self.did.append(f"clear {replica}")

    def sweep(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()
