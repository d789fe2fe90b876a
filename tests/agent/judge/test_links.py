"""Which fault explains which, in either order, on one GPU and on several."""

import pytest

from tests.agent.judge.test_judge import Bench
from tests.agent.made import cleared, events, fallen, pci, record, sample, xid
from vocab.events import Recovery, Severity

DBE = (
    "pid=7, name=a, An uncorrectable double bit error (DBE) has been detected on GPU "
    "in the framebuffer at physAddr {} partition 6"
)
ROW = "Row Remapper: New row ({}) marked for remapping, reset gpu to activate."
CONTAINED = "pid=10, name=a, Contained: CE User Channel (0x9). physAddr: {} RST: No, D-RST: No"
LINK = "NVLink: fatal error detected on link {}({}, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)"
SWITCH = "nvidia-nvswitch0: SXid (PCI:0000:c0:00.0): 20034, {}, Link 30 LTSSM Fault Up"
TORN = "pid={}, name=b, Ch 00000001"


def last(bench, *observations):
    """The last revision of each event, by code and GPU."""
    items = [item for one in observations for item in bench.see(one)] + bench.at(10_000.0)
    return {(event.code, event.gpu and int(event.gpu[4:12], 16), event.pid): event for event in events(items)}


def by_code(found):
    return {code: event for (code, _, _), event in found.items()}


@pytest.mark.parametrize("code", [63, 64, 94, 95])
def test_what_became_of_a_memory_error_points_to_it_by_address(code):
    payload = {63: ROW, 64: ROW, 94: CONTAINED, 95: CONTAINED}[code]
    same = by_code(last(Bench(), xid(1.0, 48, DBE.format("0x1000")), xid(2.0, code, payload.format("0x1000"))))
    assert same[f"xid:{code}"].cause == same["xid:48"].id
    other = by_code(last(Bench(), xid(1.0, 48, DBE.format("0x1000")), xid(2.0, code, payload.format("0x2000"))))
    assert other[f"xid:{code}"].cause is None


def test_a_row_that_already_waits_for_its_reset_is_a_note_and_a_full_table_is_none():
    waits = "Row Remapper: (0x1000) - Attempting to remap a row that is already pending remapping."
    full = "Row Remapper Error: (0x1000) - Row Remapping table is full"
    noted, failed = (by_code(last(Bench(), xid(1.0, 64, text)))["xid:64"] for text in (waits, full))
    assert (noted.severity, noted.recovery) == (Severity.INFO, Recovery.NONE)
    assert (failed.severity, failed.recovery) == (Severity.CRITICAL, Recovery.RESET_GPU)


def test_an_address_with_leading_zeros_is_the_same_address():
    pair = xid(1.0, 48, DBE.format("0x18f31d80")), xid(1.1, 63, ROW.format("0x0000000018F31D80"))
    found = by_code(last(Bench(), *pair))
    assert found["xid:63"].cause == found["xid:48"].id


def test_of_two_memory_errors_each_record_points_to_its_own():
    found = events(
        Bench().see(
            xid(1.0, 48, DBE.format("0x1000")),
            xid(1.0, 48, DBE.format("0x2000")),
            xid(1.1, 63, ROW.format("0x1000")),
            xid(1.2, 63, ROW.format("0x2000")),
        )
    )
    assert [event.cause for event in found] == [None, None, found[0].id, found[1].id]


@pytest.mark.parametrize("detail", [171, 172])
@pytest.mark.parametrize("turned", [False, True])
def test_a_detail_of_a_48_is_information_and_alone_it_asks_a_person(detail, turned):
    pair = [xid(1.0, 48, DBE.format("0x1")), xid(1.0, detail, "Uncorrectable error")]
    found = by_code(last(Bench(), *(reversed(pair) if turned else pair)))
    assert found[f"xid:{detail}"].cause == found["xid:48"].id
    assert found[f"xid:{detail}"].recovery is Recovery.NONE
    alone = by_code(last(Bench(), pair[1]))[f"xid:{detail}"]
    assert (alone.severity, alone.recovery) == (Severity.CRITICAL, Recovery.INVESTIGATE)


@pytest.mark.parametrize("turned", [False, True])
def test_a_page_fault_after_a_flash_error_points_to_it(turned):
    pair = [xid(1.0, 122, "SPI read failed"), xid(1.5, 31, "pid=1, name=a, Ch 00000001, intr 00000000.")]
    found = by_code(last(Bench(), *(reversed(pair) if turned else pair)))
    assert found["xid:31"].cause == found["xid:122"].id
    assert found["xid:31"].recovery is Recovery.RESTART_APP


def test_a_fault_explains_nothing_that_came_long_before_it():
    found = by_code(last(Bench(), xid(1.0, 45, TORN.format(1)), xid(30.0, 62, "223b6a65 00002100 00000000")))
    assert (found["xid:45"].cause, found["xid:45"].severity) == (None, Severity.WARNING)


@pytest.mark.parametrize("code", [74, 145, 149])
def test_a_link_fault_of_a_peer_ends_channels_here_too(code):
    words = "(0x021425c6 0x00000000 0x00000000 0x00000000 0x00000000 0x00000000)"
    payload = LINK.format(3, "0x100000") if code == 74 else f"NETIR_LINK_EVT Fatal XC0 i0 Link 01 {words}"
    found = last(Bench(), xid(1.0, code, payload, 0), xid(4.0, 45, TORN.format(9), 5))
    torn = found["xid:45", 5, 9]
    assert (torn.severity, torn.recovery) == (Severity.INFO, Recovery.NONE)
    assert torn.cause == found[f"xid:{code}", 0, None].id


def test_a_fault_of_a_peer_that_is_no_link_fault_explains_nothing_here():
    found = last(Bench(), xid(1.0, 48, DBE.format("0x1"), 0), xid(2.0, 45, TORN.format(9), 5))
    assert found["xid:45", 5, 9].severity is Severity.WARNING


@pytest.mark.parametrize("turned", [False, True])
def test_links_to_a_gpu_that_died_are_an_echo_of_it(turned):
    dead, echo = fallen(1.0, 0), xid(1.0, 74, LINK.format(4, "0x100000"), 6)
    found = last(Bench(), *((echo, dead) if turned else (dead, echo)))
    assert found["xid:74", 6, None].cause == found["xid:79", 0, None].id
    assert found["xid:74", 6, None].severity is Severity.INFO


def test_an_error_of_the_link_itself_stays_one_beside_a_fault_of_the_switch():
    found = by_code(last(Bench(), record(1.0, SWITCH.format("Fatal")), xid(1.5, 74, LINK.format(4, "0x400000"))))
    assert found["xid:74"].severity is Severity.WARNING
    assert found["xid:74"].cause == found["sxid:20034"].id


def test_a_harmless_word_of_the_switch_explains_nothing():
    found = by_code(last(Bench(), record(1.0, SWITCH.format("Non-fatal")), xid(1.5, 74, LINK.format(4, "0x100000"))))
    assert (found["xid:74"].cause, found["xid:74"].severity) == (None, Severity.WARNING)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("root", [62, 79, 95, 109, 119, 120, 143])
def test_a_154_is_the_drivers_word_on_the_fault_beside_it(root, turned):
    pair = [
        xid(1.0, root, "pid=7, name=a, 223b6a65 00002100"),
        xid(1.0, 154, "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"),
    ]
    found = by_code(last(Bench(), *(reversed(pair) if turned else pair)))
    assert found["xid:154"].cause == found[f"xid:{root}"].id
    assert found["xid:154"].recovery is Recovery.REBOOT_NODE


def test_a_154_back_to_none_ends_what_a_154_opened_and_nothing_else():
    bench = Bench()
    stated = "GPU recovery action changed from {} to {}"
    bench.see(xid(1.0, 62, "223b6a65 00002100"))
    bench.see(xid(1.0, 154, stated.format("0x0 (None)", "0x1 (GPU Reset Required)")))
    items = bench.see(xid(9.0, 154, stated.format("0x1 (GPU Reset Required)", "0x0 (None)")))
    assert cleared(items) == ["xid:154"]


def test_causes_are_found_by_address_where_no_gpu_is_known():
    bench = Bench(gpus=())
    found = events(bench.see(xid(1.0, 62, "223b6a65 00002100"), xid(1.1, 45, TORN.format(1))))
    assert found[1].cause == found[0].id
    assert {event.pci for event in found} == {pci(0)}


@pytest.mark.parametrize("code", [13, 31, 43, 45, 63, 92, 94])
def test_no_count_of_a_programs_errors_makes_them_harsher(code):
    bench, sent = Bench(), []
    for n in range(300):
        sent += bench.see(xid(n * 13.0, code, f"pid={n % 7}, name=a, Ch 00000001"))
    sent += bench.at(10_000.0)
    assert {event.recovery for event in events(sent)} <= {Recovery.NONE, Recovery.RESTART_APP, Recovery.INVESTIGATE}
    assert max(event.severity.rank for event in events(sent)) <= Severity.ERROR.rank


@pytest.mark.parametrize("effect", [13, 31, 32, 69])
@pytest.mark.parametrize("turned", [False, True])
def test_a_program_that_ran_on_memory_that_failed_points_to_it(effect, turned):
    pair = xid(1.0, 48, DBE.format("0x1000")), xid(1.1, effect, "pid=7, name=a, Ch 00000008")
    found = by_code(last(Bench(), *(reversed(pair) if turned else pair)))
    assert found[f"xid:{effect}"].cause == found["xid:48"].id


def test_the_drivers_word_is_on_the_worst_of_what_happened_not_on_the_last():
    found = by_code(
        last(
            Bench(),
            fallen(1.0),
            xid(1.1, 31, "pid=7, name=a, Ch 00000008"),
            xid(1.2, 154, "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"),
        )
    )
    assert found["xid:154"].cause == found["xid:79"].id


@pytest.mark.parametrize("turned", [False, True])
def test_a_link_of_the_bus_that_fails_as_its_gpu_goes_is_of_the_same_fault(turned):
    pair = fallen(1.1), record(1.0, f"nvidia {pci(0)}.0: AER: can't recover (no error_detected callback)")
    found = by_code(last(Bench(), *(pair if turned else reversed(pair))))
    assert found["aer"].cause == found["xid:79"].id


def test_the_ports_of_switches_that_lose_a_gpu_point_to_it():
    found = by_code(last(Bench(), fallen(1.0), record(13.0, SWITCH.format("Fatal"))))
    assert found["sxid:20034"].cause == found["xid:79"].id


def test_what_the_fabric_manager_repeats_of_a_switch_points_to_it():
    said = "nv-fabricmanager[9]: detected NVSwitch fatal error 20034 on fid 0 on NVSwitch pci bus id 00000000:c0:00.0"
    found = by_code(last(Bench(), record(1.0, SWITCH.format("Fatal")), record(1.5, said)))
    assert found["fabric_unhealthy"].cause == found["sxid:20034"].id


@pytest.mark.parametrize(
    ("root", "payload", "readings", "code"),
    [
        (62, "223b6a65 00002100", {"recovery_action": 1}, "recovery_action"),
        (48, DBE.format("0x1000"), {"ecc_uncorrectable": 1}, "ecc_uncorrectable"),
        (48, DBE.format("0x1000"), {"sram_threshold_exceeded": 1}, "sram_threshold"),
    ],
)
def test_a_reading_that_a_fault_brings_about_points_to_it(root, payload, readings, code):
    before = sample(0.0, 0, **dict.fromkeys(readings, 0))
    found = by_code(last(Bench(), before, xid(1.0, root, payload), sample(3.0, 0, **readings)))
    assert found[code].cause == found[f"xid:{root}"].id


def test_a_gpu_that_is_gone_is_so_by_its_fault_and_not_by_the_drivers_word_on_it():
    stated = "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"
    found = by_code(last(Bench(), fallen(1.0), xid(1.5, 154, stated), sample(3.0, 0, "GPU_IS_LOST")))
    assert found["gpu_lost"].cause == found["xid:79"].id


@pytest.mark.parametrize("turned", [False, True])
def test_channels_that_end_as_a_switch_fails_point_to_the_switch(turned):
    pair = record(1.0, SWITCH.format("Fatal")), xid(1.1, 45, TORN.format(7))
    found = by_code(last(Bench(), *(reversed(pair) if turned else pair)))
    assert (found["xid:45"].cause, found["xid:45"].severity) == (found["sxid:20034"].id, Severity.INFO)
