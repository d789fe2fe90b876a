"""How GPUs and engines spent their time, by a Prometheus with dcgm-exporter and vLLM; and what stands in it of faults.

Range queries of averages, a day at a time, so that a fleet's month is many small answers. The words are those of the
whole of Corral (``vocab.activity``); of averages, so a GPU that is busy half of an hour is not told from one at half.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from agent.judge import Judge
from agent.sources.dcgm_fields import FIELDS, reading
from agent.sources.exporter_names import ENERGY, INDEX, MODEL, NUMBERS, PCI, UUID, XID
from corral.ask import tls, token
from corral.survey import xids
from corral.survey.fleet import Board
from corral.survey.prometheus import DAY_S, Asked, Series, Tell, whole
from corral.survey.report import Engine, Gpu, Idle, Usage
from vocab.activity import Doing, activity
from vocab.events import Event
from vocab.messages import EventItem
from vocab.observations import GpuIdentity, GpuSample, NodeSeen
from vocab.pci import pci_address
from vocab.readings import Readings
from wire.client import Client

STEPS = 720  # of the whole time
LEAST_STEP_S = 300.0
BEFORE_S = 3600.0  # a boot takes less: the energy counted since the driver was loaded is compared over so long
ROWS = {row.field: row for row in FIELDS}
USED = (203, 1002, 1004, 1005, 155, 164)  # utilization, SM, tensor and DRAM activity, power and its limit
STATES = (395, 396, 389, 346, 392)  # row remaps failed and pending, no spare rows, SRAM threshold, pages to be retired
HOST = ("Hostname", "hostname", "node", "nodename", "exported_instance", "instance")
SERIAL = ("DCGM_FI_DEV_SERIAL", "serial")
LABELS = ",".join(dict.fromkeys((*UUID, *INDEX, *MODEL, *PCI, *HOST, *SERIAL)))
BAD = (Doing.HUNG, Doing.LAUNCH_BOUND, Doing.STARVED, Doing.IDLE)
MOST = 200  # GPUs that are named
FEW, FULL = 0.05, 0.95  # of requests under way, of the KV cache
TOKEN = "CORRAL_PROMETHEUS_TOKEN_FILE"  # noqa: S105 - a variable's name; not Corral's own token: that orders repairs
VLLM = {
    "running": "vllm:num_requests_running",
    "waiting": "vllm:num_requests_waiting",
    "kv": "vllm:kv_cache_usage_perc|vllm:gpu_cache_usage_perc",
}


class Metrics(msgspec.Struct, frozen=True):
    """What a Prometheus says: the GPUs that it knows, how they were used, and faults that stand now.

    ``xids``: those that the gauge of the last one has shown. ``boots``: when the driver of a node was loaded anew.
    """

    boards: tuple[Board, ...]
    usage: Usage
    events: tuple[Event, ...]
    xids: tuple[Event, ...] = ()
    boots: dict[str, list[float]] = {}


async def used(url: str, now: float, days: float, tell: Tell) -> Metrics:
    """Ask the Prometheus at ``url``. Raises Unreachable, InputError or Refused."""
    step = max(LEAST_STEP_S, math.ceil(days * DAY_S / STEPS))
    async with Client(url, token=token(TOKEN), tls=tls(url)) as client:
        asked = Asked(client, now, days, step, len(USED) + len(VLLM) + 2, tell)
        fields = {field: await asked.over_time(_names(field), LABELS) for field in USED}
        states = {field: await asked.now(_names(field), LABELS) for field in STATES}
        engines = {key: await asked.over_time(names, "instance,model_name") for key, names in VLLM.items()}
        gauge = await asked.changing(_names(XID), LABELS, UUID)
        fell = await asked.moments(f"{_highest(ENERGY)} < {_highest(ENERGY, f' offset {BEFORE_S:.0f}s')}")
    boards = _boards([*fields.values(), *states.values(), [series for _, series in gauge]])
    usage = _usage(client.base, step, boards, fields, engines)
    return Metrics(
        boards=tuple(boards.values()),
        usage=usage,
        events=tuple(_faults(boards, states, now)),
        xids=tuple(xids.judged(boards, _xids(boards, gauge, fields))),
        boots=xids.boots(boards, {uuid: dict(points) for uuid, points in _by_gpu(boards, fell).items()}, step),
    )


def _highest(field: int, offset: str = "") -> str:
    return f"max by ({LABELS}) ({whole(_names(field))}{offset})"


def _by_gpu(boards: Mapping[str, Board], series: Iterable[Series]) -> dict[str, list[tuple[float, float]]]:
    """All points of each GPU, whichever labels they came with."""
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for labels, points in series:
        if (uuid := _label(labels, UUID)) in boards:
            found[str(uuid)] += points
    return found


def _xids(
    boards: Mapping[str, Board], gauge: list[tuple[float, Series]], fields: Mapping[int, list[Series]]
) -> dict[str, list[xids.Found]]:
    seen = _by_gpu(boards, (series for field in fields.values() for series in field))
    begun = _by_gpu(boards, ((labels, [(since, 0.0)]) for since, (labels, _) in gauge))
    found = {}
    for uuid, points in _by_gpu(boards, (series for _, series in gauge)).items():
        seen_from = min((at for at, _ in seen.get(uuid, ())), default=math.inf)
        found[uuid] = list(xids.xids(points, max(seen_from, min(begun[uuid])[0])))
    return {uuid: told for uuid, told in found.items() if told}


def _names(field: int) -> str:
    return "|".join(name for name, number in NUMBERS.items() if number == field)


def _label(labels: Mapping[str, str], spellings: Iterable[str]) -> str | None:
    return next((labels[name] for name in spellings if labels.get(name)), None)


def _boards(fields: Iterable[list[Series]]) -> dict[str, Board]:
    found: dict[str, Board] = {}
    for labels, _ in (series for field in fields for series in field):
        uuid, host = _label(labels, UUID), _label(labels, HOST)
        if uuid is None or host is None or uuid in found:
            continue
        index, pci = _label(labels, INDEX), _label(labels, PCI)
        found[uuid] = Board(
            node=host.rpartition(":")[0] or host if host.rpartition(":")[2].isdecimal() else host,
            uuid=uuid,
            index=int(index) if index and index.isdecimal() else 0,
            board=_label(labels, MODEL),
            pci=pci_address(pci) if pci else None,
            serial=_label(labels, SERIAL),
        )
    return found


def _usage(
    url: str, step: float, boards: dict[str, Board], fields: dict[int, list[Series]], engines: dict[str, list[Series]]
) -> Usage:
    moments: dict[str, dict[float, dict[str, Any]]] = defaultdict(lambda: defaultdict(dict))
    for field, series in fields.items():
        for labels, values in series:
            uuid = _label(labels, UUID)
            for at, value in values if uuid is not None else ():
                if math.isfinite(value):
                    moments[str(uuid)][at][ROWS[field].name] = reading(ROWS[field], value)
    spent = [_spent(boards[uuid], by_time, step) for uuid, by_time in sorted(moments.items()) if uuid in boards]
    total: dict[str, float] = defaultdict(float)
    for each in spent:
        for word, seconds in each.seconds.items():
            total[word] += seconds
    worst = sorted((each for each in spent if _lost(each) > 0), key=lambda each: (-_lost(each), each.gpu.gpu))
    return Usage(
        source=url,
        step_s=step,
        gpus=len(spent),
        unknown=sum(1 for each in spent if each.sm_active is None),
        seconds=dict(sorted(total.items())),
        worst=tuple(worst[:MOST]),
        engines=_engines(engines, step),
    )


def _spent(board: Board, by_time: Mapping[float, Mapping[str, Any]], step: float) -> Idle:
    seconds: dict[str, float] = defaultdict(float)
    for values in by_time.values():
        found = activity(msgspec.structs.replace(Readings(), **values))
        seconds[found.doing.value if found is not None else "unknown"] += step
    gpu = Gpu(gpu=board.uuid, node=board.node, pci=board.pci, serial=board.serial, board=board.board)
    whole = sum(seconds.values())
    word = max(seconds, key=lambda each: (seconds[each], each), default="unknown")
    return Idle(
        gpu=gpu,
        word=word,
        share=seconds[word] / whole if whole else 0.0,
        utilization=_mean(by_time, "utilization_ratio") or 0.0,
        sm_active=_mean(by_time, "sm_active_ratio"),
        seconds=dict(sorted(seconds.items())),
    )


def _lost(each: Idle) -> float:
    """Seconds in which the chip was empty; those of full utilization count first, for nobody sees them."""
    hidden = sum(each.seconds.get(word.value, 0.0) for word in (Doing.HUNG, Doing.LAUNCH_BOUND))
    return 10.0 * hidden + sum(each.seconds.get(word.value, 0.0) for word in BAD)


def _mean(by_time: Mapping[float, Mapping[str, Any]], name: str) -> float | None:
    values = [each[name] for each in by_time.values() if each.get(name) is not None]
    return sum(values) / len(values) if values else None


def _engines(found: Mapping[str, list[Series]], step: float) -> tuple[Engine, ...]:
    by: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(dict)
    for key, series in found.items():
        for labels, values in series:
            name = labels.get("instance", ""), labels.get("model_name", "")
            by[name][key] = [value for _, value in values if math.isfinite(value)]
    return tuple(
        Engine(
            engine=engine,
            model=model,
            seen_s=len(values.get("running", ())) * step,
            empty=_share(values.get("running", ()), lambda value: value < FEW),
            waiting=_share(values.get("waiting", ()), lambda value: value >= 1.0),
            kv_full=_share(values.get("kv", ()), lambda value: value >= FULL),
        )
        for (engine, model), values in sorted(by.items())
    )


def _share(values: Iterable[float], of: Callable[[float], bool]) -> float:
    found = [of(value) for value in values]
    return sum(found) / len(found) if found else 0.0


def _faults(boards: Mapping[str, Board], states: Mapping[int, list[Series]], now: float) -> Iterable[Event]:
    """What stands in the metrics, by the agent's judge."""
    readings: dict[str, dict[str, Any]] = defaultdict(dict)
    for field, series in states.items():
        for labels, values in series:
            uuid = _label(labels, UUID)
            if uuid in boards and values:
                readings[str(uuid)][ROWS[field].name] = reading(ROWS[field], values[-1][1])
    by_node: dict[str, list[Board]] = defaultdict(list)
    for uuid in readings:
        by_node[boards[uuid].node].append(boards[uuid])
    for node, known in sorted(by_node.items()):
        judge = Judge(node)
        gpus = tuple(GpuIdentity(uuid=b.uuid, index=b.index, pci=b.pci or "", serial=b.serial or "") for b in known)
        items = judge.observe(NodeSeen(at=now, node=node, boot_id="", driver="", gpus=gpus), now)
        for board in known:
            seen = msgspec.structs.replace(Readings(), **readings[board.uuid])
            items += judge.observe(GpuSample(at=now, node=node, gpu=board.uuid, readings=seen), now)
        for item in [*items, *judge.close(now)]:
            if isinstance(item, EventItem):
                yield msgspec.structs.replace(item.event, boot_id=None)
