"""The system services that GPUs need, as systemd tells of them: active, restarts, and a mark of each start.

One ``systemctl show`` for all of them, in a process that is killed when it takes too long. A unit that is not
installed is nothing to tell of. The fabric manager is a source of its own: without it the GPUs of an NVSwitch board
cannot be used together, so where the board needs it, or an administrator has enabled it, its silence is one.

In a node's first minutes systemd is asked too whether its start is over: until then services may still come.
"""

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from agent.ending import kill
from agent.sources.boot import boot_at
from agent.sources.source import Emit
from vocab.clock import Clock
from vocab.observations import ServiceSeen, SourceState

FABRIC = "nvidia-fabricmanager.service"
UNITS = (
    FABRIC,
    "nvidia-persistenced.service",
    "nvidia-imex.service",
    "nvidia-dcgm.service",
    "dcgm.service",  # its name before DCGM 2
    "dcgm-exporter.service",
    "nvidia-dcgm-exporter.service",
)
PROPERTIES = "Id,LoadState,ActiveState,UnitFileState,NRestarts,InvocationID"
PERIOD_S = 30.0  # flapping is three restarts in ten minutes
TIMEOUT_S = 10.0  # systemctl's own patience with the bus is 25 s and more
STARTING = frozenset({"initializing", "starting"})
MOST_START_S = 900.0  # a start that is not over by then has a job that hangs: the node is not held back for it
START_LOOK_S = 5.0
NVSWITCH = Path("driver/nvidia-nvswitch")  # of /proc: the driver has found NVSwitches
MOST_OUTPUT = 64 * 1024
RUNNING = frozenset({"active", "reloading"})
ENABLED = frozenset({"enabled", "enabled-runtime"})


class ServiceSource:
    """Emits ServiceSeen, and SourceState of the sources ``service`` and ``fabric_manager``."""

    name = "service"

    def __init__(
        self,
        node: str,
        clock: Clock,
        *,
        units: tuple[str, ...] = UNITS,
        systemctl: str = "systemctl",
        proc: Path = Path("/proc"),
        period_s: float = PERIOD_S,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._node = node
        self._clock = clock
        self._show = (systemctl, "show", "--no-pager")
        self._units = units
        self.booting = False  # whether the node's start is not over
        self._proc = proc
        self._period_s = period_s
        self._timeout_s = timeout_s
        self._said: dict[str, tuple[str, str | None]] = {}  # by source
        self._emit: Emit = lambda _: None

    async def run(self, emit: Emit) -> None:
        """Observe until cancelled."""
        self._emit = emit
        while True:
            await self._look_at_start()
            output, error = await self._ask(f"--property={PROPERTIES}", *self._units)
            if error is None:
                self._say("service", "up")
                self._tell(output)
            else:
                self._say("service", "degraded", error)
            await asyncio.sleep(min(START_LOOK_S, self._period_s) if self.booting else self._period_s)

    async def _look_at_start(self) -> None:
        """Whether systemd still starts what the node needs; what it does not say is no start."""
        began = None
        with contextlib.suppress(OSError):
            began = boot_at(self._proc)
        if began is None or self._clock.now() - began >= MOST_START_S:
            self.booting = False
            return
        output, error = await self._ask("--property=SystemState")
        self.booting = error is None and output.strip().removeprefix("SystemState=") in STARTING

    async def _ask(self, *wanted: str) -> tuple[str, str | None]:
        """What systemctl prints, or why it prints nothing."""
        try:
            child = await asyncio.create_subprocess_exec(
                *self._show,
                *wanted,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            return "", f"NOT_FOUND: {self._show[0]} cannot be run ({error.strerror}): services are not watched"
        try:
            async with asyncio.timeout(self._timeout_s):
                out, said = await child.communicate()
        except TimeoutError:
            return "", f"TIMEOUT: systemctl did not answer within {self._timeout_s:.0f} s: services are not watched"
        finally:
            await kill(child)
        if child.returncode != 0:
            return "", f"FAILED: systemctl: {said.decode(errors='replace').strip()[:200]}"
        return out[:MOST_OUTPUT].decode(errors="replace"), None

    def _tell(self, output: str) -> None:
        at = self._clock.now()
        for unit in installed(output):
            restarts = unit.get("NRestarts", "")
            self._emit(
                ServiceSeen(
                    at=at,
                    node=self._node,
                    unit=unit["Id"],
                    active=unit.get("ActiveState") in RUNNING,
                    restarts=int(restarts) if restarts.isdecimal() else None,
                    started_at=unit.get("InvocationID") or None,
                )
            )
            if unit["Id"] == FABRIC:
                self._fabric(unit)

    def _fabric(self, unit: Mapping[str, str]) -> None:
        state = unit.get("ActiveState", "")
        wanted = unit.get("UnitFileState") in ENABLED or (self._proc / NVSWITCH).exists()
        if state in RUNNING:
            self._say("fabric_manager", "up")
        elif wanted and state not in {"activating", ""}:
            self._say("fabric_manager", "down", f"INACTIVE: {FABRIC} is {state}; see journalctl -u {FABRIC}")

    def _say(self, source: str, state: str, error: str | None = None) -> None:
        """Report a source's state if it is news."""
        if self._said.get(source) != (state, error):
            self._said[source] = state, error
            self._emit(SourceState(at=self._clock.now(), node=self._node, source=source, state=state, error=error))


def installed(output: str) -> Iterator[dict[str, str]]:
    """The installed units of ``systemctl show``: blocks of KEY=VALUE with an empty line between them."""
    for block in output.split("\n\n"):
        pairs = (line.partition("=") for line in block.splitlines())
        unit = {key: value for key, _, value in pairs}
        if unit.get("Id") and unit.get("LoadState") not in {None, "not-found", "masked"}:
            yield unit
