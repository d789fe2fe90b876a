"""What this agent watches: a real node's driver and kernel log, or a virtual node's file. Chosen once, at start."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Protocol

import msgspec

from agent.config import AgentConfig
from agent.diag.bench import Bench, of_gpu
from agent.driver import dcgm_source, exporter_source, nvml_source
from agent.replicas.identity import boot_id as machine_boot_id
from agent.replicas.record import ReplicaRecord
from agent.roothelper.client import ChildHelper, Helper, SocketHelper
from agent.sources.kernel_log import kernel_log
from agent.sources.kmsg import KmsgSource, RealKmsg, RecordReader, VirtualKmsg
from agent.sources.service import ServiceSource
from agent.sources.source import Source
from agent.surroundings import around_gpus, owners_checks
from vocab.clock import Clock
from vocab.errors import InputError, Refused

if TYPE_CHECKING:
    from agent.sources.dcgm.source import DcgmSource
    from agent.sources.keeper import Keeper
    from agent.virtual.state import VirtualState

SLOW_S = 11.0  # what NVML reads least often of what changes (10 s), and one pass
BOOT_LOOK_S = 0.1
KEPT_RECORDS = 5000
MOST_RECORDS = 100_000  # more than any ring holds: a log that grows while it is read must end

Records = Callable[[], Sequence[ReplicaRecord]]


class Hardware(Protocol):
    """The node under this agent."""

    @property
    def virtual(self) -> bool:
        """Whether it is made up."""
        ...

    @property
    def boot_id(self) -> str:
        """Its present boot."""
        ...

    def sources(self, records: Records, after_seq: int | None) -> tuple[Source, ...]:
        """What to run; kernel records are read on after ``after_seq`` of this boot."""
        ...

    def drill(self, body: bytes) -> tuple[int, ...]:
        """Let the fault in this JSON happen; the kernel records that it wrote. Raises Refused on a real node."""
        ...

    @property
    def slow_s(self) -> float:
        """The longest time between two reads of one figure that changes."""
        ...

    def helper(self) -> Helper:
        """Who does here what needs root."""
        ...

    def kernel_log(self) -> Sequence[bytes]:
        """The newest records. Raises OSError."""
        ...

    def bench(self, gpu: str) -> Bench:
        """On what active checks of a GPU run."""
        ...

    def driver_pids(self) -> frozenset[int]:
        """Our children that have the driver open."""
        ...

    async def let_go(self) -> None:
        """End them and start none."""
        ...

    def take_up(self) -> None:
        """Start them again."""
        ...

    async def renew_profiling(self) -> None:
        """Open what the activity counters are read with anew."""
        ...

    async def booted(self) -> None:
        """Return once this node runs another boot than when this was called; a real one's boot ends the waiting."""
        ...


class DcgmDrill(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="dcgm"):
    """A value that DCGM's host engine is to tell of a field of this GPU."""

    gpu: str
    field: Annotated[int, msgspec.Meta(ge=1, le=65_535)]
    value: float


class RealNode:
    """NVML, the kernel log, and what is around them."""

    virtual = False

    def __init__(self, config: AgentConfig, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self.boot_id = machine_boot_id()
        self._keepers: tuple[Keeper, ...] = ()  # of the children that have the driver open
        self._profiling: tuple[Keeper, ...] = ()  # of those that read activity counters
        self._dcgm: DcgmSource | None = None

    def sources(self, records: Records, after_seq: int | None) -> tuple[Source, ...]:
        """The driver, in a process of its own, the kernel log, and the host."""
        config = self._config
        dcgm = self._dcgm = dcgm_source(config, self._clock)
        exporter = exporter_source(config, self._clock)
        services = ServiceSource(config.node, self._clock)
        nvml = nvml_source(config, self._clock, dcgm, exporter, lambda: services.booting)
        self._keepers = (nvml.keeper, dcgm.keeper) if dcgm is not None and dcgm.embedded else (nvml.keeper,)
        self._profiling = (nvml.keeper,) if dcgm is None else (nvml.keeper, dcgm.keeper)
        kernel = kernel_log(config, self._clock, self.boot_id, after_seq)
        beside: tuple[Source, ...] = tuple(source for source in (dcgm, exporter) if source is not None)
        return nvml, *beside, kernel, *around_gpus(config, self._clock, services)

    slow_s = SLOW_S

    def helper(self) -> Helper:
        """The root helper behind its socket."""
        return SocketHelper(self._config.helper_socket)

    def kernel_log(self) -> Sequence[bytes]:
        """Of /dev/kmsg. Raises OSError."""
        return newest(RealKmsg(self._config.kmsg))

    def bench(self, gpu: str) -> Bench:
        """The GPU itself, and DCGM unless it is switched off."""
        return of_gpu(self._config)

    def driver_pids(self) -> frozenset[int]:
        """The children that have the driver's library open."""
        return frozenset().union(*(keeper.pids() for keeper in self._keepers))

    async def let_go(self) -> None:
        """The driver's library is closed."""
        for keeper in self._keepers:
            await keeper.rest()

    def take_up(self) -> None:
        """It is opened again."""
        for keeper in self._keepers:
            keeper.wake()

    async def renew_profiling(self) -> None:
        """NVML's child and DCGM's: which of them a counter came from is no matter."""
        for keeper in self._profiling:
            await keeper.renew()

    async def booted(self) -> None:
        """Never: a boot ends this process."""
        await asyncio.Event().wait()

    def drill(self, body: bytes) -> tuple[int, ...]:
        """Only what DCGM says can be made up: nothing breaks real hardware on purpose."""
        try:
            wish = msgspec.json.decode(body, type=DcgmDrill)
        except msgspec.DecodeError as error:
            raise Refused(
                'this node is real: drills happen on virtual nodes (an agent with virtual = "8xH100"), but for'
                f" `corral drill dcgm`: {error}"
            ) from error
        if self._dcgm is None:
            raise Refused("DCGM is switched off on this node (dcgm in agent.toml)")
        self._dcgm.drill(wish.gpu, wish.field, wish.value)
        return ()


class VirtualNode:
    """The file ``virtual.state`` in the run folder; it survives the agent as a node does."""

    virtual = True

    def __init__(self, config: AgentConfig, clock: Clock) -> None:
        from agent.virtual.lifecycle import power_on

        self._config = config
        self._clock = clock
        self._path = config.run_dir / "virtual.state"
        self._state: VirtualState = power_on(self._path, config.node, config.virtual or "", clock=clock)

    @property
    def boot_id(self) -> str:
        """The virtual node's boot."""
        return self._state.boot_id

    def sources(self, records: Records, after_seq: int | None) -> tuple[Source, ...]:
        """The made-up silicon, and its kernel log."""
        from agent.sources.virtual import VirtualSource

        silicon = VirtualSource(self._config.node, self._path, self._clock, records)
        log = VirtualKmsg(self._state)
        kernel = KmsgSource(self._config.node, log, self._clock, self.boot_id, after_seq=after_seq)
        return silicon, kernel, *owners_checks(self._config, self._clock)

    slow_s = 0.0

    def helper(self) -> Helper:
        """A child of ours that serves this node's file."""
        return ChildHelper(self._path, self._config.pause_file)

    def kernel_log(self) -> Sequence[bytes]:
        """Its own."""
        return newest(VirtualKmsg(self._state))

    def bench(self, gpu: str) -> Bench:
        """The CPU, with the faults that have befallen this GPU."""
        from agent.virtual.faults import befallen

        return Bench(device="cpu", faults=befallen(self._state, gpu))

    def driver_pids(self) -> frozenset[int]:
        """None: the file is read in this process, as no driver could be."""
        return frozenset()

    async def let_go(self) -> None:
        """Nothing is open."""

    def take_up(self) -> None:
        """Nothing was closed."""

    async def renew_profiling(self) -> None:
        """Nothing is open."""

    async def booted(self) -> None:
        """Return once the file has another boot id."""
        boot = self.boot_id
        while self.boot_id == boot:  # noqa: ASYNC110 - a file tells nobody
            await asyncio.sleep(BOOT_LOOK_S)

    def drill(self, body: bytes) -> tuple[int, ...]:
        """Let a fault happen to the virtual node. Raises InputError for one that it cannot have."""
        from agent.virtual.faults import Fault, apply

        try:
            fault = msgspec.json.decode(body, type=Fault)
        except msgspec.DecodeError as error:
            raise InputError(f"the drill is wrong: {error}") from error
        return apply(self._state, fault)


def newest(reader: RecordReader) -> Sequence[bytes]:
    """The last records of a kernel log that is opened for this alone. Raises OSError."""
    found: deque[bytes] = deque(maxlen=KEPT_RECORDS)
    try:
        for _ in range(MOST_RECORDS):
            with contextlib.suppress(BrokenPipeError):  # some were overwritten
                found.append(reader.read())
    except BlockingIOError:
        pass
    finally:
        reader.close()
    return tuple(found)


def hardware(config: AgentConfig, clock: Clock) -> Hardware:
    """The node that this configuration means. Raises ConfigError or InputError for a virtual one that cannot be."""
    return VirtualNode(config, clock) if config.virtual else RealNode(config, clock)
