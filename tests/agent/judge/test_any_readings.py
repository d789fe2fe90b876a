"""No sequence of readings breaks the judge, nothing impossible is judged, and what is unknown holds no GPU."""

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.judge import Judge
from agent.probes.sane import LINK_RANGES, RANGES, clean
from tests.agent.made import call, events, identity, inventory, replica, sample, source, uuid
from vocab.catalogue.codes import row
from vocab.events import Recovery
from vocab.observations import (
    Check,
    ClockStep,
    DriverEvent,
    GpuProcess,
    GpuSample,
    HostSample,
    PciDevice,
    ProcessSeen,
    Restart,
    ServiceSeen,
)
from vocab.readings import LinkReadings, Readings

STRANGE = [-1, 0, 1, 2, 3, 255, 2**31 - 16, 2**31 - 13, 2**32 - 1, 2**63 - 16, 2**64 - 1, 10**20]
ABSENT = ["NOT_SUPPORTED", "NOT_FOUND", "BLANK", "UNKNOWN", "TIMEOUT", "NO_PERMISSION", "FUNCTION_NOT_FOUND"]
gpus = st.integers(0, 3)
numbers = st.sampled_from(STRANGE)
maybe = st.none() | numbers
readings = st.dictionaries(st.sampled_from(sorted(RANGES)), numbers, max_size=6).map(lambda r: Readings(**r))
links = st.dictionaries(
    st.sampled_from(["0", "1", "17", "x"]),
    st.dictionaries(st.sampled_from(sorted(LINK_RANGES)), numbers, max_size=3).map(lambda r: LinkReadings(**r)),
    max_size=2,
)
errors = st.dictionaries(
    st.sampled_from(sorted(RANGES)), st.sampled_from([*ABSENT, "GPU_IS_LOST", "RESET_REQUIRED"]), max_size=2
)
processes = st.none() | st.lists(
    st.builds(GpuProcess, pid=st.integers(1, 4), used_bytes=st.none() | numbers), max_size=2
).map(tuple)


def devices(busy):
    return tuple(PciDevice(pci=f"0000:1{n}:00", class_="0x030200", driver=d) for n, d in enumerate(busy))


def observations():
    slices = st.lists(st.sampled_from(["a", "b", "c"]), unique=True, max_size=3)
    counters = st.dictionaries(
        st.sampled_from(["state", "link_downed", "symbol_error", "port_xmit_wait"]), numbers, max_size=3
    )
    return st.one_of(
        st.builds(lambda i, r, e, n, p: GpuSample(at=0.0, gpu=uuid(i), readings=r, errors=e, links=n, processes=p),
                  gpus, readings, errors, links, processes),
        st.builds(lambda i, e: GpuSample(at=0.0, index=i, error=e), gpus, st.sampled_from([*ABSENT, "GPU_IS_LOST"])),
        st.builds(lambda g, b, d, lib, m, x, p: msgspec.structs.replace(
                      inventory(0.0, gpus=tuple(sorted(g)), boot_id=b, driver=d, library=lib, expected_gpus=x),
                      gpus=tuple(identity(i, mig=tuple({"uuid": u, "gi": 1, "ci": 0} for u in m)) for i in sorted(g)),
                      pci_devices=None if p is None else devices(p)),
                  st.sets(gpus), st.sampled_from(["b1", "b2"]), st.sampled_from(["565.1", "550.2", None]),
                  st.sampled_from([None, "565.1", "12.550.2"]), slices, st.none() | st.integers(0, 9),
                  st.none() | st.lists(st.sampled_from(["nvidia", "vfio-pci", None]), max_size=4)),
        st.builds(lambda i, n, s, e, p: call(0.0, s, n, i, e, p), st.none() | gpus, st.sampled_from(["a", "nvmlInit"]),
                  st.sampled_from(["started", "returned", "failed"]),
                  st.none() | st.sampled_from([*ABSENT, "GPU_IS_LOST"]), st.none() | st.integers(1, 3)),
        st.builds(lambda s, n, e: source(0.0, s, n, e), st.sampled_from(["up", "down", "degraded"]),
                  st.sampled_from(["nvml", "dcgm"]), st.none() | st.sampled_from([*ABSENT, "LIB_RM_VERSION_MISMATCH"])),
        st.builds(lambda c, d: HostSample(at=0.0, readings={"nvidia_d_state": d}, devices={"mlx5_0": c}),
                  counters, numbers),
        st.builds(lambda p, s, n: ProcessSeen(at=0.0, pid=p, state=s, name=n, used_bytes={uuid(0): 5}),
                  st.integers(1, 3), st.sampled_from(["R", "D", "Z", "gone"]), st.sampled_from([None, "nvidia-smi"])),
        st.builds(lambda n, s: ServiceSeen(at=0.0, unit="a", restarts=n, started_at=s),
                  maybe, maybe.map(lambda n: n and float(n))),
        st.builds(lambda e, v, x: replica(0.0, error=e, visible=v, phase=x), st.none() | st.sampled_from(ABSENT),
                  st.sampled_from([None, "", "0", "MIG-a", "a,b"]), st.sampled_from(["ready", "starting"])),
        st.builds(lambda i, d: DriverEvent(at=0.0, gpu=uuid(i), type="recovery_action", data=d),
                  gpus, st.integers(0, 9)),
        st.sampled_from([ClockStep(at=0.0, pause_s=300.0), Restart(at=0.0, of="agent"),
                         Check(at=0.0, check="canary", gpu=uuid(1), result="problem")]),
    )  # fmt: skip


steps = st.lists(st.tuples(observations(), st.sampled_from([0.0, 1.0, 10.0, 61.0, 400.0, 4_000.0])), max_size=30)
usual = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def play(judge, moves, start=0.0):
    now, items = start, []
    for observation, wait in moves:
        now += wait
        turns = 0
        while (due := judge.next_deadline()) is not None and due <= now:
            items += judge.tick(due)
            turns += 1
            assert turns < 10_000, "a deadline that does not move"
            assert judge.next_deadline() is None or judge.next_deadline() > due
        items += judge.observe(msgspec.structs.replace(observation, at=now), now)
    return items, now


@usual
@given(steps)
def test_no_readings_break_it(moves):
    judge = Judge("n1")
    items, _ = play(judge, [(inventory(0.0, gpus=(0, 1, 2, 3)), 0.0), *moves])
    for event in events(items):
        assert row(event.code).source != "generic row", event.code
        assert event.count >= 1
    msgspec.json.encode(events(items))


@usual
@given(steps, steps)
def test_a_restored_judge_goes_on_as_the_one_before(before, after):
    whole, first = Judge("n1"), Judge("n1")
    _, now = play(whole, before)
    play(first, before)
    restored = Judge.restore(first.snapshot())
    assert play(restored, after, now)[0] == play(whole, after, now)[0]


@usual
@given(st.lists(st.tuples(gpus, st.sampled_from(ABSENT), st.sampled_from([1.0, 15.0, 700.0])), max_size=40))
def test_what_cannot_be_read_at_all_takes_no_gpu_out_of_service(reads):
    """All GPUs fail together, with every word that means unknown."""
    judge, now, items = Judge("n1"), 0.0, []
    judge.observe(inventory(0.0, gpus=(0, 1, 2, 3)), 0.0)
    for gpu, error, wait in reads:
        now += wait
        items += judge.tick(now) + judge.observe(sample(now, gpu, error=error), now)
    assert not [event for event in events(items) if event.gpu and event.recovery.rank > Recovery.RESTART_APP.rank]


@usual
@given(readings, links)
def test_cleaning_twice_changes_nothing(figures, wires):
    once = clean(GpuSample(at=0.0, gpu=uuid(0), readings=figures, links=wires))
    assert clean(once) == once
    for name, (low, high) in RANGES.items():
        value = getattr(once.readings, name)
        assert value is None or low <= value <= high
