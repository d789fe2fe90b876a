"""What programs write into the kernel log, and what a switch prints in several lines: told apart, put together."""

from agent.judge import Judge
from tests.agent.made import NODE, XID_79, events, inventory, pci, record, uuid


def play(*several):
    """The last revision of each event of these (line, facility), half a tenth of a second apart."""
    judge = Judge(NODE)
    items = list(judge.observe(inventory(), 0.0))
    for number, (line, facility) in enumerate(several, 1):
        items += judge.observe(record(number * 0.05, line, facility=facility), number * 0.05)
    return list({event.id: event for event in events([*items, *judge.close(100.0)])}.values())


def test_a_forged_line_teaches_nobody_where_a_gpu_is():
    (event,) = play(
        (f"NVRM: GPU at PCI:{pci(3)}: GPU-deadbeef-0000", 1),
        (XID_79.format(pci=pci(3)), 0),
    )
    assert event.gpu == uuid(3)


def test_a_forged_line_does_not_become_part_of_a_real_one():
    found = play(
        (f"NVRM: Xid (PCI:{pci(3)}): 154,", 0),
        ("GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)", 1),
    )
    assert [(event.code, event.recovery, event.injected) for event in found] == [("xid:154", "investigate", False)]


def test_lines_of_one_sxid_count_once_though_the_number_moved():
    head = "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 28006, "
    (event,) = play(
        (head + "Non-fatal, Link 46 MC TS crumbstore MCTO (First)", 0),
        (head + "Severity 0 Engine instance 46 Sub-engine instance 00", 0),
        (head + "Data {0x000001c0, 0x00bd5c8a}", 0),
    )
    assert (event.code, event.count, event.device) == ("sxid:29006", 1, "switch:3/link:46")


def test_switch_that_turns_itself_off_is_critical():
    (event,) = play(
        ("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 10004, PMGR OVERT Threshold reached. Shutting Down", 0)
    )
    assert (event.code, event.severity) == ("sxid:10004", "critical")
