"""The survey of a small fleet's month: what stands, what was missed, which card is a lemon, what Corral would cost."""

import json
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from corral.survey.report import Survey
from corral.survey.run import Wish, survey
from corral.survey.sections import headline
from corral.survey.write import written
from tests.bench.survey_logs import START, node_name, serial, uuid, write
from vocab.errors import InputError

NOW = START.timestamp() + 30 * 86_400
NODES = (1, 7, 11, 42)  # nothing; off the bus and rebooted; off the bus and not seen; a lemon


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Survey:
    folder = tmp_path_factory.mktemp("logs")
    for number in NODES:
        write(folder, number, 30, 300)
    return survey(Wish(paths=(str(folder),), jobs=1), lambda *_: None, now=NOW)


def test_a_gpu_off_the_bus_that_nobody_rebooted_should_be_out_now(found: Survey) -> None:
    (standing,) = found.standing
    assert (standing.node, standing.code, standing.recovery) == (node_name(11), "xid:79", "reboot_node")
    assert standing.gpu is not None
    assert (standing.gpu.gpu, standing.gpu.serial) == (uuid(11, 5), serial(11, 5))


def test_a_fault_that_stood_for_days_was_missed_and_says_how_it_ended(found: Survey) -> None:
    missed = {each.node: each for each in found.missed}
    assert missed[node_name(7)].ended_by == "a boot"
    assert missed[node_name(7)].stood_s == pytest.approx(3.1 * 86_400, abs=10_000)
    assert missed[node_name(11)].ended_by is None


def test_a_card_that_fails_every_third_day_is_a_lemon_by_serial(found: Survey) -> None:
    assert [lemon.gpu.serial for lemon in found.lemons if lemon.lemon] == [serial(42, 6)]


def test_what_corral_would_have_held_is_a_small_part_of_what_served_faulty(found: Survey) -> None:
    assert found.cost is not None
    assert found.cost.holds >= 3
    assert 0 < found.cost.held_gpu_s < found.cost.fleet_gpu_s / 100
    assert found.cost.served_faulty_s > 3 * 86_400


def test_faults_of_programs_take_no_gpu_out(found: Survey) -> None:
    asks = {fault.code: fault.asks for fault in found.faults}
    assert asks["xid:79"]
    assert asks.get("xid:31") is False


def test_gpus_that_nothing_names_are_said_to_be_assumed(found: Survey) -> None:
    assert (found.nodes, found.gpus) == (4, 32)
    assert 0 < found.assumed_gpus < 32
    assert "taken to be there" in written(found, "markdown")


def test_all_forms_say_the_same(found: Survey) -> None:
    assert headline(found) in written(found, "markdown")
    assert headline(found) in written(found, "html")
    assert msgspec.json.decode(written(found, "json"), type=Survey) == found


def test_the_page_needs_nothing_else(found: Survey) -> None:
    page = written(found, "html")
    assert "http:" not in page
    assert "https:" not in page
    assert "<script" not in page
    assert "prefers-color-scheme: dark" in page


def test_what_a_log_says_cannot_leave_its_cell(found: Survey) -> None:
    standing = msgspec.structs.replace(found.standing[0], node="<b>|`x", gpu=None)
    evil = msgspec.structs.replace(found, standing=(standing,))
    assert "<b>" not in written(evil, "html")
    assert "\\|" in written(evil, "markdown")
    assert "<b>" not in written(evil, "markdown")


def test_nothing_to_read_says_what_to_name() -> None:
    with pytest.raises(InputError, match="name files or folders"):
        survey(Wish(), lambda *_: None, now=NOW)


@pytest.mark.parametrize("text", [None, "", "[limits]\ncordons = 3\n"])
def test_what_is_no_log_is_no_all_clear(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "gpu-0001.log"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError, match=r"No such file|no line|nothing in it has the form of a kernel log"):
        survey(Wish(paths=(str(path),), jobs=1), lambda *_: None, now=NOW)


@pytest.mark.parametrize("line", [
    "Nov 28 03:11:02 n9 kernel: [    5.123456] eth0: link up",
    "[    5.123456] eth0: link up",
])  # fmt: skip
def test_a_node_in_whose_log_nothing_is_of_a_gpu_counts_with_its_gpus(tmp_path: Path, line: str) -> None:
    (tmp_path / "n9").mkdir()
    (tmp_path / "n9" / "kern.log").write_text(f"{line}\nsomething else\n")
    made = survey(Wish(paths=(str(tmp_path),), jobs=1), lambda *_: None, now=NOW)
    assert (made.nodes, made.gpus, made.assumed_gpus, made.unread) == (1, 8, 8, ())


def test_a_log_that_cannot_be_read_is_named_and_the_rest_is_told(tmp_path: Path) -> None:
    write(tmp_path, 1, 2, 20)
    (tmp_path / "gpu-0002.log").write_bytes(b"LPKSHHRH" + b"\x00" * 64)
    made = survey(Wish(paths=(str(tmp_path),), jobs=1), lambda *_: None, now=NOW)
    assert made.nodes == 1
    assert "journalctl" in made.unread[0]
    assert json.loads(written(made, "json"))["unread"] == list(made.unread)


def test_a_fault_after_which_the_log_is_quiet_stands_until_the_survey(tmp_path: Path) -> None:
    line = "2026-11-28T03:11:02+00:00 gpu-07 kernel: NVRM: Xid (PCI:0000:5e:00): 79, GPU has fallen off the bus.\n"
    (tmp_path / "gpu-07.log").write_text(line)
    at = datetime(2026, 11, 28, 3, 11, 2, tzinfo=UTC).timestamp()
    made = survey(Wish(paths=(str(tmp_path),), jobs=1), lambda *_: None, now=at + 5 * 3600)
    (standing,), (missed,) = made.standing, made.missed
    assert (standing.code, missed.code, missed.ended_by) == ("xid:79", "xid:79", None)
    assert missed.stood_s == pytest.approx(5 * 3600, abs=5)
    told = written(made, "markdown")
    assert "| gpu-07 0000:5e:00 | xid:79: GPU has fallen off the bus | reboot node | 2026-11-28 03:11 | 5 h |" in told
    assert "## Should be out of service now" in told
