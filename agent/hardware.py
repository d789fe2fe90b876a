"""What this agent watches: a real node's driver and kernel log, or a virtual node's file. Chosen once, at start."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

from agent.config import AgentConfig
from agent.driver import dcgm_source, nvml_source
from agent.replicas.identity import boot_id as machine_boot_id
from agent.replicas.record import ReplicaRecord
from agent.sources.kmsg import KmsgSource, RealKmsg, RecordReader, VirtualKmsg
from agent.sources.source import Source
from agent.surroundings import around_gpus, owners_checks, with_exporter
from vocab.clock import Clock
from vocab.errors import InputError, Refused

if TYPE_CHECKING:
    from agent.virtual.state import VirtualState

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


class RealNode:
    """NVML, the kernel log, and what is around them."""

    virtual = False

    def __init__(self, config: AgentConfig, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self.boot_id = machine_boot_id()

    def sources(self, records: Records, after_seq: int | None) -> tuple[Source, ...]:
        """The driver, in a process of its own, the kernel log, and the host."""
        config = self._config
        dcgm = dcgm_source(config, self._clock)
        nvml = nvml_source(config, self._clock, dcgm)
        kernel = _kernel(config, RealKmsg(config.kmsg), self._clock, self.boot_id, after_seq)
        driver = (*with_exporter(nvml, config, self._clock), *((dcgm,) if dcgm else ()))
        return *driver, kernel, *around_gpus(config, self._clock)

    def drill(self, body: bytes) -> tuple[int, ...]:
        """Refused: nothing breaks real hardware on purpose."""
        raise Refused('this node is real: drills happen on virtual nodes only (an agent with virtual = "8xH100")')


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
        kernel = _kernel(self._config, VirtualKmsg(self._state), self._clock, self.boot_id, after_seq)
        return silicon, kernel, *owners_checks(self._config, self._clock)

    def drill(self, body: bytes) -> tuple[int, ...]:
        """Let a fault happen to the virtual node. Raises InputError for one that it cannot have."""
        from agent.virtual.faults import Fault, apply

        try:
            fault = msgspec.json.decode(body, type=Fault)
        except msgspec.DecodeError as error:
            raise InputError(f"the drill is wrong: {error}") from error
        return apply(self._state, fault)


def hardware(config: AgentConfig, clock: Clock) -> Hardware:
    """The node that this configuration means. Raises ConfigError or InputError for a virtual one that cannot be."""
    return VirtualNode(config, clock) if config.virtual else RealNode(config, clock)


def _kernel(config: AgentConfig, reader: RecordReader, clock: Clock, boot_id: str, after_seq: int | None) -> KmsgSource:
    return KmsgSource(config.node, reader, clock, boot_id, after_seq=after_seq)
