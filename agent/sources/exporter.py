"""A dcgm-exporter that runs on this node already, as a source: its /metrics, so that nothing is read twice.

It is second-hand and up to a minute old, so it never stands beside NVML's figures: ``complete`` puts into NVML's own
samples what NVML has not given of that GPU (performance counters of boards before Hopper, most of all). Activity is
added only while the page's utilization agrees with NVML's, for else it is of another time than the work. Where NVML
has given nothing since the start, the page is shown alone.

Its gauge of Xids holds the last code for ever: what stands there at first is history. A change is told as a driver's
event, for which the kernel's line has been there before. A page that repeats itself while the energy counter should
run is stale (the exporter serves its last values when its host engine is gone): nothing is taken from it.
"""

import asyncio
from collections.abc import Mapping

import aiohttp
import msgspec

from agent.sources.dcgm_fields import FIELDS, reading
from agent.sources.exporter_names import ENERGY, FREE, UTILIZATION, XID
from agent.sources.exporter_page import Exported, ExportedGpu, Values, read_page
from agent.sources.source import Emit
from vocab.clock import Clock
from vocab.observations import AnyObservation, DriverEvent, GpuIdentity, GpuSample, NodeSeen, SourceState
from vocab.readings import Readings

PERIOD_S = 15.0  # the exporter itself collects each 30 s unless told otherwise
TIMEOUT_S = 10.0
MOST_BYTES = 8 * 2**20  # 8 GPUs of 7 instances with every field and pod label are some 2 MiB
FRESH_S = 45.0  # three looks; then what was on the page is no longer shown
STALE_S = 180.0  # six collections without a joule
GONE_S = 3_600.0  # a GPU that is no longer on the page is missed for so long
ALONE_AFTER_S = 30.0  # without any sample of NVML's since the start
AGREES = 0.25  # of utilization
ROWS = {row.field: row for row in FIELDS}
ACTIVITY = frozenset(row.name for row in FIELDS if row.profiling)
MEBI = 2**20


class Seen(msgspec.Struct):
    """One GPU over time: its readings by the page, when they last moved, and the Xid that it last showed."""

    readings: Readings
    errors: dict[str, str]
    utilization: float | None
    at: float
    moved_at: float
    energy: float | None = None
    xid: int | None = None
    instances: dict[str, Readings] = {}
    used: bool = False  # put into a sample already: what was read once must not count twice


class ExporterSource:
    """Emits GpuSample (only while alone), DriverEvent and SourceState of the source ``exporter``."""

    name = "exporter"

    def __init__(
        self,
        node: str,
        url: str,
        clock: Clock,
        *,
        period_s: float = PERIOD_S,
        timeout_s: float = TIMEOUT_S,
        alone_after_s: float = ALONE_AFTER_S,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._node = node
        self._url = url
        self._clock = clock
        self._period_s = period_s
        self._most_bytes = most_bytes
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._alone_at = clock.monotonic() + alone_after_s
        self._given: dict[str, set[str]] = {}  # readings that NVML has given, by GPU
        self._seen: dict[str, Seen] = {}
        self._page = Exported()
        self._said: tuple[str, str | None] | None = None
        self._emit: Emit = lambda _: None

    async def run(self, emit: Emit) -> None:
        """Observe until cancelled."""
        self._emit = emit
        while True:
            try:
                text = await self._fetch()
            except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
                self._say("down", f"UNREACHABLE: {self._url}: {str(error) or type(error).__name__}")
            else:
                self.take(await asyncio.to_thread(read_page, text))
            await asyncio.sleep(self._period_s)

    async def _fetch(self) -> str:
        """The page. Raises ValueError for what is none."""
        async with (
            aiohttp.ClientSession(timeout=self._timeout) as session,
            session.get(self._url, allow_redirects=False) as answer,
        ):
            if answer.status != 200:
                raise ValueError(f"it answered {answer.status}")
            raw = bytearray()
            async for part in answer.content.iter_chunked(64 * 1024):
                raw += part
                if len(raw) > self._most_bytes:
                    raise ValueError(f"its page is longer than {self._most_bytes} bytes")
        return raw.decode(errors="replace")

    # what the page says

    def take(self, page: Exported) -> None:
        """A page has come."""
        now = self._clock.monotonic()
        self._page = page
        self._seen = {uuid: seen for uuid, seen in self._seen.items() if now - seen.at <= GONE_S}
        gone = [uuid for uuid in self._seen if uuid not in page.gpus]
        for gpu in page.gpus.values():
            self._note(gpu, now)
        stale = [uuid for uuid, seen in self._seen.items() if now - seen.moved_at > STALE_S and uuid in page.gpus]
        self._say(*_verdict(page, gone, stale))
        if not self._given and now >= self._alone_at:
            for uuid in page.gpus:
                self._stand_alone(uuid, now)

    def _note(self, gpu: ExportedGpu, now: float) -> None:
        before = self._seen.get(gpu.uuid)
        energy, xid = gpu.values.get(ENERGY), gpu.values.get(XID)
        still = before is not None and energy is not None and energy == before.energy
        seen = self._seen[gpu.uuid] = Seen(
            readings=_readings(gpu.values),
            errors={ROWS[field].name: kind for field, kind in gpu.errors.items() if field in ROWS},
            utilization=gpu.values.get(UTILIZATION),
            at=now,
            moved_at=before.moved_at if before is not None and still else now,
            energy=energy,
            xid=before.xid if before is not None else None,
            instances={f"{number}/0": _readings(values) for number, values in gpu.instances.items()},
        )
        if xid is not None:
            if seen.xid is not None and int(xid) not in {0, seen.xid}:
                self._emit(
                    DriverEvent(
                        at=self._clock.now(), node=self._node, source=self.name, gpu=gpu.uuid, type="xid", data=int(xid)
                    )
                )
            seen.xid = int(xid)

    def _usable(self, uuid: str | None, now: float) -> Seen | None:
        seen = self._seen.get(uuid or "")
        return seen if seen is not None and now - seen.at <= FRESH_S and now - seen.moved_at <= STALE_S else None

    # beside NVML

    def complete(self, observation: AnyObservation) -> AnyObservation:
        """An observation of NVML's with what it has never given and the page has."""
        match observation:
            case GpuSample(gpu=str(gpu), readings=Readings() as readings):
                return self._completed(observation, gpu, readings)
            case NodeSeen(gpus=()) if not self._given and self._page.gpus:
                return self._inventory(observation)
        return observation

    def _completed(self, sample: GpuSample, gpu: str, readings: Readings) -> GpuSample:
        names = msgspec.structs.asdict(readings)
        given = self._given.setdefault(gpu, set())
        given.update(name for name, value in names.items() if value is not None)
        seen = self._usable(gpu, self._clock.monotonic())
        if seen is None or seen.used:
            return sample
        seen.used = True
        left_out = given if _agrees(seen.utilization, readings.utilization_ratio) else given | ACTIVITY
        ours = {name: value for name, value in _known(seen.readings).items() if name not in left_out}
        if not ours:
            return sample
        errors = {name: why for name, why in sample.errors.items() if name not in ours}
        return msgspec.structs.replace(sample, readings=msgspec.structs.replace(readings, **ours), errors=errors)

    def _inventory(self, seen: NodeSeen) -> NodeSeen:
        """Where there is no NVML: the GPUs of the page, as far as it names their addresses."""
        gpus = tuple(
            GpuIdentity(uuid=gpu.uuid, index=gpu.index, pci=gpu.pci, name=gpu.name)
            for gpu in self._page.gpus.values()
            if gpu.index is not None and gpu.pci is not None
        )
        return msgspec.structs.replace(seen, driver=self._page.driver or seen.driver, gpus=gpus) if gpus else seen

    def _stand_alone(self, uuid: str, now: float) -> None:
        seen = self._usable(uuid, now)
        if seen is None or seen.moved_at < now:  # an older collection: it would count as another sign of life
            return
        self._emit(
            GpuSample(
                at=self._clock.now(),
                node=self._node,
                gpu=uuid,
                readings=seen.readings,
                errors=seen.errors,
                instances=seen.instances,
                source=self.name,
            )
        )

    def _say(self, state: str, error: str | None = None) -> None:
        """Report the source's state if it is news."""
        if (state, error) != self._said:
            self._said = state, error
            self._emit(SourceState(at=self._clock.now(), node=self._node, source=self.name, state=state, error=error))


def _readings(values: Values) -> Readings:
    """In base units, and each in its own type."""
    found = {ROWS[field].name: reading(ROWS[field], value) for field, value in values.items() if field in ROWS}
    free, used = values.get(FREE), found.get("memory_used_bytes")
    if found.get("memory_total_bytes") is None and free is not None and used is not None:
        found["memory_total_bytes"] = int(free * MEBI + used + (found.get("memory_reserved_bytes") or 0))
    return msgspec.structs.replace(Readings(), **found)


def _known(readings: Readings) -> Mapping[str, float]:
    return {name: value for name, value in msgspec.structs.asdict(readings).items() if value is not None}


def _agrees(page: float | None, ratio: float | None) -> bool:
    """Whether the page (in percent) is of the same time as the sample; where nobody tells, nothing contradicts."""
    return ratio is None or (page is not None and abs(page / 100 - ratio) <= AGREES)


def _verdict(page: Exported, gone: list[str], stale: list[str]) -> tuple[str, str | None]:
    if not page.gpus:
        return "down", "NO_DATA: its page names no GPU: its host engine is gone, or no field is configured"
    if stale:
        return (
            "degraded",
            f"STALE: its figures of {', '.join(sorted(stale))} repeat themselves: is its host engine gone?",
        )
    if gone:
        return "degraded", f"GPU_GONE: its page no longer names {', '.join(sorted(gone))}"
    if page.unread:
        return "degraded", f"UNREADABLE: {page.unread} lines of its page are no samples"
    return "up", None
