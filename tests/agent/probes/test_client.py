"""Programs with the driver library of another build, firmware without a sign of life, and lines that name no GPU."""

import pytest

from tests.agent.judge.test_judge import Bench
from tests.agent.made import cleared, events, pci, record, source, uuid
from vocab.events import Flag, Recovery, Scope, Severity

OLD = ("API mismatch: the client has the version 570.86.10, but", "this kernel module has the version 570.124.06. ",
       "make sure that this kernel module and all NVIDIA driver", "components have the same version.")  # fmt: skip
NEW = ("API mismatch: the client 'serve' (pid 812)", "has the version 570.86.10, but this kernel module has",
       "the version 570.124.06.  Please make sure that this", "kernel module and all NVIDIA driver components",
       "have the same version.")  # fmt: skip
SILENT = "NVRM: GPU2 _kgspRpcRecvPoll: GSP RM heartbeat timed out"


def told(*lines, **node):
    bench = Bench(**node)
    return events(bench.see(*(record(1.0 + n / 1000, line) for n, line in enumerate(lines))) + bench.at(30.0))


@pytest.mark.parametrize(("said", "pid", "name"), [(OLD, None, None), (NEW, 812, "serve")])
@pytest.mark.parametrize("form", ["\n{}", "\n               {}", " {}", "#012{}"])
def test_a_refused_program_is_software_of_the_node_in_either_text_and_any_form(said, pid, name, form):
    joined = "NVRM: " + said[0] + "".join(form.format(f"NVRM: {more}" if form != " {}" else more) for more in said[1:])
    (event,) = told(joined)
    assert (event.code, event.gpu, event.scope, event.flags) == ("driver_library_mismatch", None, Scope.NODE, ())
    assert (event.severity, event.recovery) == (Severity.WARNING, Recovery.INVESTIGATE)
    assert (event.pid, event.process) == (pid, name)
    assert event.fields == {"library": "570.86.10", "kernel": "570.124.06"}


@pytest.mark.parametrize("said", [OLD, NEW])
def test_the_lines_of_one_refusal_are_one_event_where_each_is_a_record(said):
    (event,) = told(*(f"NVRM: {line}" for line in said))
    assert event.fields == {"library": "570.86.10", "kernel": "570.124.06"}


def test_the_silence_of_an_hour_ends_it_unless_the_library_itself_says_so():
    said = record(1.0, "NVRM: " + " ".join(OLD))
    bench = Bench()
    bench.see(said)
    assert cleared(bench.at(3700.0)) == ["driver_library_mismatch"]
    bench = Bench()
    bench.see(said, source(2.0, "down", error="LIB_RM_VERSION_MISMATCH"))
    assert cleared(bench.at(3700.0)) == []
    assert "driver_library_mismatch" in cleared(bench.see(source(3800.0, "up")))


def test_firmware_without_a_sign_of_life_is_of_nobody_where_several_could_be_meant():
    (event,) = told(SILENT)
    assert (event.code, event.gpu, event.scope) == ("xid:119", None, Scope.NODE)
    assert event.flags == (Flag.INFERRED, Flag.LOOKUP_FAILED)
    assert (event.severity, event.recovery, event.fields["gpu_instance"]) == (Severity.WARNING, Recovery.INVESTIGATE, 2)


def test_what_names_no_gpu_is_of_the_one_that_the_node_has():
    bench = Bench(gpus=(0,))
    for code, line in (("xid:119", SILENT), ("xid:79", "NVRM: Xid: 79, GPU has fallen off the bus.")):
        (event,) = events(bench.see(record(5.0, line)) + bench.at(6.0))
        assert (event.code, event.gpu, Flag.INFERRED in event.flags) == (code, uuid(0), True)


def test_an_xid_without_an_address_is_never_guessed():
    (event,) = told("NVRM: Xid: 31, pid=4, Ch 00000001")
    assert (event.code, event.gpu, event.flags) == ("xid:31", None, (Flag.LOOKUP_FAILED,))


@pytest.mark.parametrize("mark", ["", "WARNING: ", "NVRM: "])
def test_a_board_with_a_corrupted_store_is_named_by_its_address(mark):
    (event,) = told(f"{mark}infoROM is corrupted at gpu 0000{pci(3)}.0")
    assert (event.code, event.gpu, event.severity) == ("inforom_corrupted", uuid(3), Severity.WARNING)
    assert event.recovery is Recovery.CONTACT_SUPPORT
