"""Any recording, of valid and of nonsense lines: replay answers, the same twice, keeps its budgets, and all can end."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controller.core.fleet.settings import Limits
from tests.corral.playing import Json, deployment, end, kinds, node, of, replica, sample, told, xid
from vocab.readings import LinkReadings, Readings

GPUS, NODES = 3, ("n1", "n2")
gpus, nodes = st.integers(0, GPUS - 1), st.sampled_from(NODES)
strange = st.sampled_from([None, True, -1, 0, 1, 2, 9, 255, 1e6, 2**32 - 1, 2**63 - 16, 2**64 - 1, 10**20, "[N/A]"])
words = st.sampled_from([None, "", "x", "UNKNOWN", "GPU_IS_LOST", "NO_PERMISSION", "ready", "up", 9, -1, 10**20])
HARMFUL = (48, 62, 79, 95, 119, 140, 154)
NUMBERS = st.sampled_from([*HARMFUL, 0, 13, 31, 43, 45, 63, 64, 74, 94, 149, 154, 999])
PAYLOADS = st.sampled_from(
    [
        None,
        "",
        "pid=7, name=x, Ch 00000001",
        "pid='<unknown>', name=<unknown>, Ch 00000001 caused by previous Xid 149",
        "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
        "NVLink: fatal error detected on link 14(0x100000, 0x0, 0x0, 0x0, 0x0,",
        "RLW_RXPIPE Nonfatal XC0 i0 Link -1 (0x0407b0c2 0x00000008",
    ]
)


def figures(names: tuple[str, ...], most: int) -> st.SearchStrategy[Json]:
    """Some of these readings, with values that mostly cannot be."""
    return st.dictionaries(st.sampled_from([*names, "unheard_of"]), strange, max_size=most)


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    """Any of these fields, or none."""
    return st.fixed_dictionaries({}, optional=fields)


def uuid(name: str, gpu: int) -> str:
    return f"GPU-{name}-{gpu}"


uuids = st.builds(uuid, nodes, gpus)
anyone = st.none() | uuids | st.sampled_from(["", "GPU-unheard-of"])
NIC = ("state", "link_downed", "symbol_error", "port_xmit_wait", "port_xmit_discards", "port_rcv_errors")
HOST = ("nvidia_d_state", "memory_available_bytes", "clock_offset_s", "uptime_s")
texts = st.text(max_size=30) | st.sampled_from(["CUDA error: an illegal memory access was encountered"])
members = st.lists(st.builds(lambda n, g: {"node": n, "gpu": uuid(n, g), "rank": g}, nodes, gpus), max_size=2)
exits = st.none() | some(code=strange, signal=st.sampled_from([None, 6, 9, 11]), text=texts, reason=texts)


def facts(kind: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    """A line of a kind: what names its subject, and some of its other fields."""
    needed = {name: fields.pop(name) for name in NEEDED.get(kind, ())}
    return st.builds(
        lambda name, more, rest: of(kind, 0, name, **more, **rest), nodes, st.fixed_dictionaries(needed), some(**fields)
    )


NEEDED = {
    "source": ("source", "state"), "check": ("check",), "service": ("unit",), "log": ("replica",), "action": ("of",),
    "restart": ("of",), "reach": ("of", "by", "ok"), "uplink": ("state",), "operator": ("do",),
}  # fmt: skip


LINES: dict[str, st.SearchStrategy[Json]] = {
    "node": st.builds(
        lambda name, listed, boot, more: node(0, name, boot=boot, listed=sorted(listed)) | more,
        nodes, st.sets(gpus), st.sampled_from(["b1", "b2"]),
        some(driver=st.sampled_from([None, "570.86", "1", ""]), library=words, period_s=strange, boot_at=strange,
             expected_gpus=strange, booting=st.booleans(), virtual=st.booleans(),
             reset=st.lists(uuids, max_size=2)),
    ),
    "kernel": st.builds(
        lambda name, number, gpu, tail, more: xid(0, number, gpu, name, "" if tail is None else tail, **more),
        nodes, NUMBERS, st.integers(0, GPUS), PAYLOADS,
        some(seq=st.integers(0, 40) | strange, kernel_s=strange, facility=st.sampled_from([0, 1, None]),
             backlog=st.booleans(), source=st.sampled_from(["kmsg", "journal", "syslog"])),
    ),
    "line": st.builds(lambda name, text: of("kernel", 0, name, source="kmsg", line="NVRM: " + text), nodes, texts),
    "lost": facts("kernel", error=st.sampled_from(["EPIPE", "EAGAIN", "EINVAL", "EOF", "CURSOR_GONE"])),
    "gpu": st.builds(
        lambda name, gpu, more: of("gpu", 0, name, gpu=uuid(name, gpu)) | more,
        nodes, gpus,
        some(readings=figures(Readings.__struct_fields__, 6), error=words,
             errors=st.dictionaries(st.sampled_from(["power_w", "ecc_uncorrectable"]), words, max_size=2),
             links=st.dictionaries(st.sampled_from(["0", "17", "x"]), figures(LinkReadings.__struct_fields__, 3),
                                   max_size=2),
             instances=st.dictionaries(st.sampled_from(["1/0", "x"]), figures(Readings.__struct_fields__, 2),
                                       max_size=1),
             processes=st.lists(st.fixed_dictionaries({"pid": st.integers(1, 4), "used_bytes": strange}),
                                max_size=2)),
    ),
    "call": facts("call", call=st.sampled_from(["nvmlInit", "x"]), gpu=anyone,
                  state=st.sampled_from(["started", "returned", "failed", "x"]), error=words, pid=strange),
    "source": facts("source", source=st.sampled_from(["nvml", "dcgm", "kernel", "plugin:x"]),
                    state=st.sampled_from(["up", "down", "degraded", "x"]), error=words, remote=st.booleans()),
    "check": facts("check", check=st.sampled_from(["canary", "x"]), gpu=anyone, text=texts, code=words,
                   result=st.sampled_from(["pass", "problem", "unknown"]), fatal=st.none() | st.booleans()),
    "host": facts("host", readings=figures(HOST, 4),
                  devices=st.dictionaries(st.just("mlx5_0"), figures(NIC, 4), max_size=1)),
    "process": st.builds(
        lambda line, pid: line | {"pid": pid},
        facts("process", state=st.sampled_from(["R", "S", "D", "Z", "gone", "x"]), name=words, replica=words,
              used_bytes=st.dictionaries(uuids, strange, max_size=1), start_s=strange),
        st.integers(1, 4),
    ),
    "service": facts("service", unit=st.just("a.service"), active=st.booleans(), restarts=strange, started_at=strange),
    "replica": st.builds(
        lambda line, name: line | {"replica": name},
        facts("replica", deployment=st.sampled_from(["chat", "other"]), members=members,
              ready=st.sampled_from([None, True, False]),
              phase=st.sampled_from([None, "starting", "ready", "draining", "stopped", "x"]), running=strange,
              waiting=strange, step=strange, oldest_wait_s=strange, open_requests=strange, health=words, error=words,
              visible=words, exit=exits, requests_ok=strange, requests_failed=strange, observed=st.booleans(),
              pids=st.lists(st.integers(1, 4), max_size=2)),
        st.sampled_from(["R1", "R2"]),
    ),
    "log": facts("log", replica=st.just("R1"), line=texts, rank=strange),
    "action": facts("action", of=st.sampled_from(["reset_gpu", "reboot_node", "drain", "start_replica", "x"]),
                    gpu=anyone, state=st.sampled_from(["accepted", "done", "failed", "refused", "x"]),
                    by=st.sampled_from(["corral", "other"])),
    "restart": facts("restart", of=st.sampled_from(["agent", "controller", "gateway"]), kept=st.booleans()),
    "clock": facts("clock", step_s=strange, pause_s=st.sampled_from([None, 0.0, 30.0])),
    "report": facts("report"),
    "reach": facts("reach", of=nodes, by=st.sampled_from(["gateway", "n2"]), ok=st.booleans()),
    "uplink": facts("uplink", state=st.sampled_from(["up", "down", "lossy"])),
    "driver_event": facts("driver_event", type=st.sampled_from(["xid", "ecc", "clock", "recovery_action", "x"]),
                          gpu=anyone, index=strange, data=strange, source=st.sampled_from(["nvml", "dcgm"])),
    "operator": facts("operator", do=st.sampled_from(["hold", "lift", "drain", "cancel", "release", "approve",
                                                      "set_healthy", "discard_backlog", "pause", "resume", "x"]),
                      gpu=anyone, deployment=words, incident=words, by=words, reason=texts, force=st.booleans()),
    "deployment": st.builds(lambda n: deployment(0, replicas=n), st.integers(0, 3)),
    "fleet": st.just(of("fleet", 0, None, pools={"a": {"nodes": ["n1"], "level": "cordon"}}, domains={"r": ["n1"]})),
    "unheard of": st.just(of("unheard_of", 0)),
}  # fmt: skip
waits = st.sampled_from([0, 0.05, 1, 10, 61, 400])
Moves = list[tuple[Json, float]]
SOME = settings(max_examples=20, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def moves(*names: str) -> st.SearchStrategy[Moves]:
    """Lines of these kinds (all, if none is named), each with the seconds before it."""
    chosen = [LINES[name] for name in names] if names else list(LINES.values())
    return st.lists(st.tuples(st.one_of(chosen), waits), max_size=25)


def timed(chosen: Moves, last: float = 900.0) -> list[Json]:
    """A recording of two nodes with a deployment, and then these lines."""
    lines = [node(name=name, gpus=GPUS) for name in NODES] + [deployment(replicas=2)]
    lines += [replica(0, f"R{n}", (0,), on=name, pids=[n]) for n, name in enumerate(NODES, 1)]
    now = 1.0
    for line, wait in chosen:
        now += wait
        lines.append(line | {"at": now})
    return [*lines, end(now + last)]


def answered(*lines: Json) -> tuple[int, str, str]:
    """What a replay says."""
    with TemporaryDirectory() as place:
        return told(Path(place), *lines)


def decided(*lines: Json) -> list[Json]:
    """The decision lines; of a recording that cannot be read, those up to there."""
    code, out, err = answered(*lines)
    assert code == 0 or (code == 2 and ".jsonl:" in err), err
    return [json.loads(line) for line in out.splitlines()]


@SOME
@given(moves())
def test_any_recording_is_answered_and_the_same_each_time(chosen: Moves) -> None:
    lines = timed(chosen)
    once, again = answered(*lines), answered(*lines)
    assert once[0] == 0, once[2]
    assert once == again


@SOME
@given(moves())
def test_nothing_is_ordered_beyond_its_budget(chosen: Moves) -> None:
    repairing: dict[str, str] = {}
    for line in kinds(decided(*timed(chosen)), "action"):
        budget = line["budget"]
        if line["state"] in ("ordered", "running") and budget is not None:
            assert budget["used"] <= budget["limit"], line
        if line["of"] in ("reset_gpu", "reboot_node", "power_cycle"):
            repairing[line["id"]] = line["state"]
        under_way = [state for state in repairing.values() if state in ("ordered", "running")]
        assert len(under_way) <= Limits().repairs


UNKNOWN = ("call", "source", "lost", "report", "host", "unheard of", "line", "log")


def tells_of_a_fault(line: Json) -> bool:
    """A driver that hangs, or that says that a GPU is lost, is not merely silent."""
    hangs = line["obs"] == "call" and line.get("state") not in ("returned", "failed")
    return hangs or line.get("error") == "GPU_IS_LOST" or "nvidia_d_state" in line.get("readings", ())


@SOME
@given(moves(*UNKNOWN))
def test_what_is_unknown_holds_nothing(chosen: Moves) -> None:
    lines = decided(*timed([(line, wait) for line, wait in chosen if not tells_of_a_fault(line)]))
    assert not kinds(lines, "hold")
    assert not [line for line in kinds(lines, "action") if line["of"] in ("reset_gpu", "reboot_node", "drain")]


@SOME
@given(moves("kernel"))
def test_what_is_injected_holds_nothing(chosen: Moves) -> None:
    forged = [(line | {"facility": 1}, wait) for line, wait in chosen]
    lines = decided(*timed(forged))
    assert all(line["event"]["injected"] for line in kinds(lines, "event") if line["event"]["code"].startswith("xid"))
    assert not kinds(lines, "hold", "incident", "condition")
    assert not [line for line in kinds(lines, "action") if line["of"] != "start_replica"]


def remedy(at: float) -> list[Json]:
    """All that can go well: what is there is reset and booted anew, reads well, works, and is looked at for hours."""
    well = {
        "temperature_c": 50, "clock_reasons": 0, "power_w": 100, "pcie_width": 16, "pcie_width_max": 16, "margin_c": 40,
        "pcie_generation": 5, "pcie_generation_max": 5, "recovery_action": 0, "remap_pending": 0, "remap_failed": 0,
        "fabric_state": 3, "fabric_status": 0, "fabric_health_mask": 0x2A, "memory_used_bytes": 0, "fan_ratio": 0.4,
        "utilization_ratio": 0.0, "memory_total_bytes": 80 << 30, "power_limit_w": 700, "ecc_uncorrectable": 0,
    }  # fmt: skip
    nic = {"state": 1, "link_downed": 0, "symbol_error": 0}
    links = {name: {"state": 1, "crc_errors": 0, "replays": 0, "recoveries": 0} for name in ("0", "17", "x")}
    lines: list[Json] = [of("operator", at, name, do="resume") for name in NODES]
    for name in NODES:
        lines += [of("uplink", at, name, state="up")]
        lines += [node(at, name, gpus=GPUS, boot="b9", boot_at=at, period_s=600, library="570.86")]
        lines += [of("source", at, name, source=s, state="up") for s in ("nvml", "dcgm", "kernel", "plugin:x")]
        lines += [of("process", at, name, pid=pid, state="gone") for pid in range(1, 5)]
    for turn in range(12):
        now = at + 600.0 * (turn + 1)
        for name in NODES:
            lines += [of("report", now, name), of("host", now, name, devices={"mlx5_0": nic})]
            lines += [of("service", now, name, unit="a.service", active=True, restarts=0)]
            for named in ("", "GPU-unheard-of", None):
                lines += [of("check", now, name, check=c, gpu=named, result="pass") for c in ("canary", "x")]
            for gpu in range(GPUS):
                lines += [sample(now, gpu, name, **well, links=links, processes=[])]
                lines += [of("check", now, name, check=c, gpu=uuid(name, gpu), result="pass") for c in ("canary", "x")]
        lines += [
            replica(now, f"R{n}", (0,), on=name, phase="ready" if turn > 1 else "starting", health=200, error="0",
                    visible=None, step=turn, requests_ok=1000 * turn, requests_failed=0, pids=[100 + n])
            for n, name in enumerate(NODES, 1)
        ]  # fmt: skip
    return lines


@SOME
@given(moves())
def test_every_condition_but_those_of_a_person_can_end(chosen: Moves) -> None:
    """Also what an agent had opened that has lost its disk since. What a controller lost with its own, nobody ends."""
    lines = [line | {"kept": True} if line.get("of") == "controller" else line for line in timed(chosen)]
    start = float(lines.pop()["at"])
    said = decided(*lines, *remedy(start), end(start + 7_210))
    standing = {line["id"]: line for line in kinds(said, "condition")}
    left = [line for line in standing.values() if line["state"] != "cleared" and line["clears_on"] != "person"]
    assert [(line["code"], line["clears_on"], line["subject"]) for line in left] == []
