"""The program that measures, as a child in a process group of its own: read line by line, killed as a whole.

A test that does not end by its deadline is unknown, and so are those after it. The child sees only the GPUs that it is
given, has the agent's rights as a replica has, which are few, and ends with the agent, for its standard input is a pipe
of ours.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress

import msgspec

from agent.diag.bench import Bench
from agent.diag.plan import DEADLINE_S, burn_s
from agent.ending import kill_group
from vocab.diag import AnyFigures, Begun, Unmeasured

PROGRAM = (sys.executable, "-m", "engine.diag")
NICE_ON_CPU = ("nice", "-n", "10")  # as replicas on a CPU: the daemons come first
MOST_LINE = 64 * 1024

Take = Callable[[AnyFigures], Awaitable[None]]


class Child:
    """One run of the program. ``end`` may be called at any time, from another task."""

    def __init__(
        self,
        program: Sequence[str],
        gpus: Sequence[str],
        bench: Bench,
        tests: Sequence[str],
        deadlines: Mapping[str, float] = DEADLINE_S,
    ) -> None:
        self._command = (
            *(NICE_ON_CPU if bench.device == "cpu" else ()),
            *program,
            *("--device", bench.device, "--burn-s", f"{burn_s(bench.device):g}"),
            *(part for fault in bench.faults for part in ("--fault", fault)),
            *tests,
        )
        self._environment = environment(os.environ, gpus if bench.device == "cuda" else ())
        self._deadlines = deadlines
        self._left = list(tests)
        self._why = ""
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int | None:
        """While it runs."""
        process = self._process
        return process.pid if process is not None and process.returncode is None else None

    def end(self, why: str) -> None:
        """Kill it; what was not measured by then is unknown for this reason."""
        self._why = self._why or why
        self._kill()

    def _kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def run(self, take: Take) -> None:
        """Every test gives ``take`` one result, whatever becomes of the program. One that was ended is not begun."""
        if not self._why:
            await self._run(take)
        for test in self._left:
            await take(Unmeasured(test=test, why=self._why or "the measuring program ended early; see the agent's log"))

    async def _run(self, take: Take) -> None:
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                env=self._environment,
                start_new_session=True,
                limit=MOST_LINE,
            )
        except OSError as error:
            self._why = f"the measuring program cannot be started: {error}"
        else:
            if self._why:  # it was ended while it was being started
                self._kill()
            try:
                await self._read(self._process, take)
            finally:
                await kill_group(self._process)

    async def _read(self, process: asyncio.subprocess.Process, take: Take) -> None:
        assert process.stdout is not None
        while self._left:
            now = self._left[0]
            try:
                async with asyncio.timeout(self._deadlines[now]):
                    line = await process.stdout.readline()
            except TimeoutError:
                self.end(f"{now} did not end within {self._deadlines[now]:g} s and was killed")
                return
            except ValueError:  # a line longer than the limit
                self.end("the measuring program talks nonsense")
                return
            if not line:
                return
            figures = _decoded(line)
            if figures is None:
                self.end("the measuring program talks nonsense")
                return
            if not isinstance(figures, Begun):
                test = figures.test if isinstance(figures, Unmeasured) else str(figures.__struct_config__.tag)
                if test in self._left:
                    self._left.remove(test)
            await take(figures)


def environment(inherited: Mapping[str, str], gpus: Sequence[str]) -> dict[str, str]:
    """The agent's environment with exactly these GPUs visible, and without what is systemd's or a secret's."""
    kept = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "TMPDIR")
    env = {key: inherited[key] for key in kept if key in inherited}
    return env | {"CUDA_VISIBLE_DEVICES": ",".join(gpus), "PYTHONUNBUFFERED": "1"}


def _decoded(line: bytes) -> AnyFigures | None:
    try:
        return msgspec.json.decode(line, type=AnyFigures)
    except msgspec.DecodeError:
        return None
