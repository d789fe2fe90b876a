import math

import msgspec
import pytest

from agent.probes.kernel import KernelProbe
from agent.probes.tape import Tape
from tests.agent.made import BOOTED, fallen, inventory, pci, record, scene, uuid, xid
from vocab.events import Flag, Severity


class Reader:
    def __init__(self, **node):
        self.tape, self.scene = Tape(), scene(**node)
        self.probe = KernelProbe(self.tape)

    def read(self, *records):
        return [v for r in records for v in self.probe.observe(r, self.scene, r.at if r.at == r.at else 0.0)]


def test_an_xid_names_the_gpu_of_its_address_at_once():
    (found,) = Reader().read(fallen(5.0, 3, seq=7))
    assert (found.code, found.gpu, found.pci, found.seq) == ("xid:79", uuid(3), pci(3), 7)
    assert found.kernel_s == 5.0 - BOOTED
    assert "fallen off the bus" in found.evidence[0].line
    assert found.flags == ()


def test_pid_and_name_are_those_of_the_line_and_none_where_it_has_none():
    payload = "pid=4321, name=VLLM::Worker, Ch 00000008"
    (known,) = Reader().read(xid(1.0, 43, payload))
    assert (known.pid, known.process) == (4321, "VLLM::Worker")
    (unknown,) = Reader().read(xid(1.0, 43, "pid='<unknown>', name=<unknown>, Ch 00000008"))
    assert (unknown.pid, unknown.process) == (None, None)


def test_a_gpu_that_has_left_the_inventory_is_known_by_its_last_address():
    reader = Reader()
    reader.scene.see(inventory(1.0, gpus=(0, 1)))
    (found,) = reader.read(fallen(2.0, 5))
    assert (found.gpu, found.flags) == (uuid(5), (Flag.CACHED_UUID,))


def test_an_address_that_nobody_knows_is_said_and_belongs_to_no_gpu():
    (found,) = Reader().read(record(1.0, "NVRM: Xid (PCI:0009:01:00): 79, GPU has fallen off the bus."))
    assert (found.gpu, found.pci, found.flags) == (None, "0009:01:00", (Flag.LOOKUP_FAILED,))


def test_an_unknown_address_is_the_one_gpu_that_is_absent():
    reader = Reader()
    reader.scene.absent.add(uuid(2))
    (found,) = reader.read(record(1.0, "NVRM: Xid (PCI:0009:01:00): 79, GPU has fallen off the bus."))
    assert (found.gpu, found.flags) == (uuid(2), (Flag.INFERRED,))


def test_the_log_itself_teaches_addresses():
    reader = Reader(gpus=())
    reader.read(record(1.0, "NVRM: GPU at PCI:0000:4e:00: GPU-b850f46d-d5ea-c752-ddf3-c4453e44d3f7"))
    (found,) = reader.read(record(1.0, "NVRM: Xid (PCI:0000:4e:00): 31, pid=1, name=a, Ch 00000001, intr 00000000."))
    assert found.gpu == "GPU-b850f46d-d5ea-c752-ddf3-c4453e44d3f7"


@pytest.mark.parametrize("facility", [1, 3])
def test_what_a_program_wrote_is_injected(facility):
    (found,) = Reader().read(fallen(1.0, facility=facility))
    assert found.injected


@pytest.mark.parametrize(("mark", "injected"), [("i0", False), ("i00", False), ("i1", True), ("i01", True)])
def test_the_drivers_own_mark_says_injected(mark, injected):
    words = "(0x0253a1c6 0x00000000 0x00000000 0x00000000 0x00000000 0x00000000)"
    (found,) = Reader().read(xid(1.0, 149, f"NETIR_LINK_EVT Fatal XC0 {mark}  Link 03 {words}"))
    assert found.injected is injected
    assert found.fields["subcode"] == 37
    assert found.fields["link"] == 3


def test_nonfatal_nvlink_5_errors_are_not_fatal_and_a_link_of_minus_one_is_none():
    words = "(0x0407b0c2 0x00000008 0x00000000 0x00000000 0x00100000 0x00000004)"
    (soft,) = Reader().read(xid(1.0, 145, f"RLW_RXPIPE Nonfatal XC0 i0 Link 13 {words}"))
    assert soft.severity in {Severity.INFO, Severity.WARNING}
    words = "(0x000fd806 0x00000000 0x00000000 0x00000000 0x00000000 0x00000000)"
    (hard,) = Reader().read(xid(1.0, 149, f"NETIR Fatal XC0 i0 Link -1 {words}"))
    assert hard.fields["link"] is None
    assert hard.fields["fatal"] is True


def test_xid_154_says_what_the_driver_asks_for():
    (found,) = Reader().read(xid(1.0, 154, "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"))
    assert found.fields["to"] == 1
    assert found.recovery == "reset_gpu"


def test_a_gpu_that_fell_off_without_a_number_is_79_and_adds_nothing_to_one_that_has_one():
    (found,) = Reader().read(record(1.0, f"NVRM: GPU {pci(1)}.0: GPU has fallen off the bus."))
    assert (found.code, found.gpu, found.flags, found.count) == ("xid:79", uuid(1), (Flag.INFERRED,), 1)


def _words(at, index, **changes):
    return record(at, f"NVRM: GPU {pci(index)}.0: GPU has fallen off the bus.", **changes)


@pytest.mark.parametrize("order", [(fallen, _words), (_words, fallen)])
def test_an_xid_79_and_the_words_around_it_are_counted_once_in_either_order(order):
    found = Reader().read(*(make(1.0, 1, kernel_s=10_001.0) for make in order))
    assert [f.count for f in found] == [1, 0]


def test_the_lines_of_an_sxid_are_one_finding_and_its_scope_is_no_gpu():
    head = "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, "
    found = Reader().read(
        record(1.0, head + "Non-fatal, Link 32 egress non-posted PRIV error (First)"),
        record(1.0, head + "Severity 0 Engine instance 32 Sub-engine instance 00"),
        record(1.0, head + "Data {0x000001c0, 0x00bd5c8a, 0x00000500, 0x00000064}"),
    )
    assert [f.count for f in found] == [1, 0, 0]
    assert {(f.code, f.gpu, f.pci, f.device, f.fields["link"], f.severity) for f in found} == {
        ("sxid:12028", None, "0000:c1:00", "switch:3/link:32", 32, Severity.WARNING)
    }


def test_an_sxid_without_its_headline_is_partial_and_not_fatal():
    (found,) = Reader().read(record(1.0, "nvidia-nvswitch1: SXid (PCI:0000:c2:00.0): 12028, Data {0x000001c0}"))
    assert Flag.PARTIAL in found.flags
    assert found.fields["fatal"] is None
    assert found.severity is None


def test_a_record_counts_once_however_often_it_is_read():
    reader = Reader()
    assert len(reader.read(fallen(1.0, 0, seq=5), fallen(1.0, 0, seq=5), fallen(1.0, 1, seq=4))) == 1


def test_copies_of_a_record_in_other_logs_are_the_same_evidence():
    reader = Reader()
    lines = [fallen(1.0, 0, kernel_s=10_001.0004), fallen(1.0, 0, kernel_s=10_001.0001, source="journal")]
    assert len(reader.read(*lines)) == 1
    lines = [fallen(1.0, 0, kernel_s=10_001.1004), fallen(1.0, 0, kernel_s=10_001.1, source="dmesg")]
    assert len(reader.read(*lines)) == 1


def test_a_jump_in_the_numbers_is_a_loss_with_its_bounds():
    reader = Reader()
    reader.read(record(1.0, "x", 100), record(1.0, "x", 101))
    (found,) = reader.read(record(1.0, "x", error="EPIPE"), record(1.0, "x", 5322), record(1.0, "x", 5323))
    assert found.code == "kernel_records_lost"
    assert found.fields == {"from": 102, "to": 5321, "lost": 5220}


def test_a_loss_whose_size_nobody_knows_is_said_as_well():
    reader = Reader()
    (found,) = reader.read(record(1.0, "x", error="EPIPE", kernel_s=None), record(2.0, "y"))
    assert found.fields["lost"] is None


def test_a_record_that_may_go_on_is_judged_after_a_tenth_of_a_second():
    reader = Reader()
    gsp = (
        "pid=1, name=a, Timeout after 6s of waiting for RPC response from GPU4 GSP! Expected function 76 (X) (0x1 0x2)."
    )
    assert reader.read(xid(1.0, 119, gsp, seq=9)) == []
    assert (reader.probe.next_deadline(), reader.tape.judged) == (1.1, None)
    assert reader.probe.tick(reader.scene, 1.05) == ()
    (found,) = reader.probe.tick(reader.scene, 1.1)
    assert (found.code, found.seq) == ("xid:119", 9)
    assert (reader.probe.next_deadline(), reader.tape.judged) == (None, 9)


def test_the_next_record_ends_the_wait_and_each_keeps_its_own_number():
    reader = Reader()
    gsp = (
        "pid=1, name=a, Timeout after 6s of waiting for RPC response from GPU4 GSP! Expected function 76 (X) (0x1 0x2)."
    )
    reader.read(xid(1.0, 119, gsp, seq=9))
    first, second = reader.read(fallen(1.01, 2, seq=10))
    assert [(first.code, first.seq), (second.code, second.seq)] == [("xid:119", 9), ("xid:79", 10)]


def test_backlog_keeps_its_own_time():
    (found,) = Reader().read(fallen(100.0, kernel_s=10_050.0, backlog=True))
    assert found.at == BOOTED + 10_050.0
    assert set(found.flags) == {Flag.BACKLOG, Flag.TIME_ESTIMATED}


def test_a_live_record_has_the_time_of_reading_whatever_the_kernels_clock_says():
    skew, found = Reader().read(fallen(50_000.0, kernel_s=12.0))
    assert (found.at, found.kernel_s) == (50_000.0, 12.0)
    assert (skew.code, skew.fields) == ("kernel_clock_skew", {"skew_s": 59_988.0})


def test_a_skew_is_said_once_and_corrects_what_is_read_from_a_backlog():
    reader = Reader()
    reader.read(record(50_000.0, "x", kernel_s=50_000.0), record(50_001.0, "x", kernel_s=50_001.0))
    assert reader.probe._log.skew.behind_s == 10_000.0
    (found,) = reader.read(fallen(50_002.0, kernel_s=40_000.0, backlog=True))
    assert found.at == 40_000.0


def test_a_line_whose_own_stamp_is_before_the_boot_is_history():
    reader = Reader(at=1_000_000.0, boot_at=900_000.0)
    old = xid(1_000_000.0, 31, "pid=1, name=a, Ch 00000001, intr 00000000.", kernel_s=None, backlog=True)
    old = msgspec.structs.replace(old, line=f"1970-01-05T00:00:00Z h kernel: {old.line}", source="syslog")
    (found,) = reader.read(old)
    assert (found.history, found.at, found.flags) == (True, 345_600.0, (Flag.BACKLOG,))


def test_a_reader_that_begins_anew_tells_nothing_twice():
    reader = Reader()
    lines = [fallen(n, n % 3, kernel_s=10_000.0 + n // 4, source="dmesg") for n in range(1, 13)]
    first = reader.read(*lines[:8])
    assert len(first) == 8
    gone = record(20.0, "", error="CURSOR_GONE", source="dmesg", kernel_s=None)
    assert len(reader.read(gone, *(msgspec.structs.replace(line, at=21.0, backlog=True) for line in lines))) == 4


def test_a_log_that_ends_is_a_source_that_is_down_until_it_is_read_again():
    probe = Reader().probe
    ended, again = record(1.0, "", error="EOF"), record(2.0, "x")
    turns = [probe.turned(observation) for observation in (ended, ended, again, again)]
    assert [turn and turn.state for turn in turns] == ["down", None, "up", None]


def test_a_line_without_a_time_has_none():
    (found,) = Reader().read(fallen(math.nan, kernel_s=None))
    assert math.isnan(found.at)
    assert found.evidence[0].at is None


@pytest.mark.parametrize(
    "line",
    [
        "mlx5_core 0000:4e:00.0: device has fallen off the bus (test string)",
        "nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context, skipping further processing",
        "NVRM: Xid error: xyz, invalid data",
        "usb 1-1: new device",
        "",
    ],
)
def test_other_lines_are_no_findings(line):
    assert Reader().read(record(1.0, line)) == []
