"""Faults: what the silicon does and what the driver says of it."""

from pathlib import Path

import pytest

from agent.virtual.faults import Fault, apply
from agent.virtual.motion import advance
from agent.virtual.physics import Load
from agent.virtual.state import VirtualState
from vocab.errors import InputError


@pytest.fixture
def state(tmp_path: Path) -> VirtualState:
    return VirtualState.create(tmp_path / "virtual.state", "node-a")


def texts(state: VirtualState, numbers: tuple[int, ...]) -> list[str]:
    raw = [state.read_log(number) for number in numbers]
    return [record.decode().partition(";")[2].rstrip("\n") for record in raw if record]


def test_xid_79_loses_the_gpu_and_prints_the_drivers_burst(state: VirtualState) -> None:
    lines = texts(state, apply(state, Fault(kind="xid", code=79, gpu=0)))
    uuid, serial = state.gpus[0].uuid.decode(), state.gpus[0].serial.decode()
    assert lines == [
        f"NVRM: GPU at PCI:0000:19:00: {uuid}",
        f"NVRM: GPU Board Serial Number: {serial}",
        "NVRM: Xid (PCI:0000:19:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
        "NVRM: GPU 0000:19:00.0: GPU has fallen off the bus.",
        f"NVRM: GPU 0000:19:00.0: GPU serial number is {serial}.",
    ]
    assert [gpu.lost for gpu in state.gpus] == [15, 0, 0, 0, 0, 0, 0, 0]


def test_the_driver_introduces_a_gpu_once_a_boot(state: VirtualState) -> None:
    apply(state, Fault(kind="xid", code=43, gpu=1, pid=7, process="python3"))
    again = texts(state, apply(state, Fault(kind="xid", code=43, gpu=1, pid=7, process="python3")))
    assert again == ["NVRM: Xid (PCI:0000:3b:00): 43, pid=7, name=python3, Ch 00000008"]


@pytest.mark.parametrize("code", [13, 31, 43, 45, 48, 63, 64, 74, 92, 94, 95, 109, 119, 500])
def test_every_xid_line_names_address_code_and_process(state: VirtualState, code: int) -> None:
    lines = texts(state, apply(state, Fault(kind="xid", code=code, gpu=7, pid=99, process="serve")))
    xids = [line for line in lines if "Xid" in line]
    assert xids
    for line in xids:
        assert line.startswith(f"NVRM: Xid (PCI:0000:db:00): {code}, pid=99, name=serve, ")
        assert "{" not in line


def test_a_text_of_the_callers_stands_in_for_the_usual_payload(state: VirtualState) -> None:
    numbers = apply(state, Fault(kind="xid", code=31, text="anything {at} all"))
    assert texts(state, numbers)[-1].endswith("name=<unknown>, anything {at} all")


def test_a_line_that_a_program_wrote_changes_nothing_else(state: VirtualState) -> None:
    numbers = apply(state, Fault(kind="xid", code=79, facility=1))
    raw = state.read_log(numbers[2])
    assert raw is not None
    assert raw.startswith(b"11,")
    assert state.gpus[0].lost == 0
    assert state.block.event_next == 0


@pytest.mark.parametrize(
    ("fault", "changed"),
    [
        (Fault(kind="xid", code=48), {"ecc_dram_uncorrected": 1, "ecc_dram_uncorrected_lifetime": 1}),
        (Fault(kind="xid", code=63), {"remap_uncorrectable": 1, "remap_pending": 1}),
        (Fault(kind="xid", code=64), {"remap_failed": 1}),
        (Fault(kind="xid", code=154), {"recovery_action": 1}),
        (Fault(kind="ecc", count=5), {"ecc_dram_uncorrected": 5, "ecc_dram_corrected": 0}),
        (Fault(kind="ecc", count=5, correctable=True), {"ecc_dram_uncorrected": 0, "ecc_dram_corrected": 5}),
        (Fault(kind="remap"), {"remap_pending": 1, "remap_failed": 0}),
        (Fault(kind="remap", failed=True), {"remap_pending": 0, "remap_failed": 1}),
        (Fault(kind="hang"), {"hang": 1}),
    ],
    ids=lambda value: value.kind + str(value.code or "") if isinstance(value, Fault) else "",
)
def test_a_fault_moves_its_counters_on_its_gpu_alone(
    state: VirtualState, fault: Fault, changed: dict[str, int]
) -> None:
    apply(state, fault)
    assert {name: getattr(state.gpus[0], name) for name in changed} == changed
    assert {name: getattr(state.gpus[1], name) for name in changed} == dict.fromkeys(changed, 0)


def test_a_link_fault_takes_that_link_down(state: VirtualState) -> None:
    apply(state, Fault(kind="xid", code=74, link=13))
    assert [number for number, link in enumerate(state.gpus[0].links) if not link.state] == [13]


def test_failed_cooling_shows_as_heat_and_slow_clocks_until_it_is_cleared(state: VirtualState) -> None:
    gpu = state.gpus[0]
    apply(state, Fault(kind="thermal"))
    advance(gpu, state.board, Load(utilization=1.0, contexts=1), [], 1.0)
    assert gpu.temperature_c >= gpu.temperature_slowdown_c
    assert gpu.clock_reasons == 0x48
    apply(state, Fault(kind="clear"))
    for _ in range(60):
        advance(gpu, state.board, Load(), [], 1.0)
    assert (gpu.temperature_c, gpu.clock_reasons) == (29, 1)


def test_clear_ends_every_fault(state: VirtualState) -> None:
    faults = [Fault(kind="xid", code=code) for code in (48, 63, 64, 74, 79, 92, 94, 95, 154)]
    for fault in [*faults, Fault(kind="thermal"), Fault(kind="power_brake"), Fault(kind="hang")]:
        apply(state, fault)
    apply(state, Fault(kind="clear"))
    gpu, good = state.gpus[0], state.gpus[1]
    names = {name for name, *_ in type(gpu)._fields_} - {"uuid", "serial", "pci_bus", "minor", "introduced", "links"}
    assert {name: getattr(gpu, name) for name in names if isinstance(getattr(gpu, name), (int, float))} == {
        name: getattr(good, name) for name in names if isinstance(getattr(good, name), (int, float))
    }
    assert list(gpu.banks) == list(good.banks)
    assert all(link.state for link in gpu.links)


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (Fault(kind="xid"), "code: None is not an Xid"),
        (Fault(kind="xid", code=0), "code: 0 is not an Xid"),
        (Fault(kind="xid", code=79, gpu=8), "gpu: 8 is not a GPU"),
        (Fault(kind="ecc", count=0), "count: 0"),
        (Fault(kind="link", link=18), "link: 18 is not a link"),
    ],
)
def test_what_the_node_does_not_have_is_refused_and_nothing_happens(
    state: VirtualState, fault: Fault, says: str
) -> None:
    before = bytes(state.path.read_bytes())
    with pytest.raises(InputError, match=says):
        apply(state, fault)
    assert state.path.read_bytes() == before
