"""What faults cost: counted when it is known, and left out when its beginning is not."""

from msgspec.structs import replace

from controller.telling.export import Export
from tests.controller.telling.test_export import repair, samples
from vocab.events import Recovery, Severity
from vocab.lines import AnyLine, IncidentLine, StateLine, Subject
from vocab.states import ActionState

Found = dict[tuple[str, tuple[tuple[str, str], ...]], float]

GPU = Subject(gpu="GPU-0")


def incident(at: float, state: str) -> IncidentLine:
    return IncidentLine(
        at=at, subject=GPU, id="i-1", state=state, root="e-1", code="xid:79", severity=Severity.CRITICAL,
        recovery=Recovery.REBOOT_NODE,
    )  # fmt: skip


def moved(at: float, before: str, after: str) -> StateLine:
    return StateLine(at=at, subject=GPU, from_=before, to=after, why="")


def counted(found: Found, name: str) -> dict[tuple[tuple[str, str], ...], float]:
    """The series of this metric that have counted anything."""
    return {labels: value for (each, labels), value in found.items() if each == name and value}


def told(*lines: AnyLine) -> Found:
    export = Export("1")
    export.committed(0.01, lines)
    return samples(export.render()[0].decode())


def test_an_incident_is_counted_at_its_opening_and_timed_at_its_end() -> None:
    found = told(incident(100.0, "open"), incident(110.0, "updated"), incident(400.0, "closed"))
    critical = (("severity", "critical"),)
    assert found["corral_incidents_total", critical] == 1
    assert (found["corral_incident_seconds_count", critical], found["corral_incident_seconds_sum", critical]) == (
        1,
        300,
    )
    assert found["corral_incidents_total", (("severity", "warning"),)] == 0  # there from the start


def test_an_incident_that_is_older_than_the_process_has_no_duration() -> None:
    found = told(incident(400.0, "closed"))
    assert {value for (name, _), value in found.items() if name == "corral_incident_seconds_count"} == {0}


def test_each_phase_out_of_service_is_timed_by_itself() -> None:
    found = told(
        moved(0.0, "healthy", "draining"),
        moved(30.0, "draining", "repairing"),
        moved(90.0, "repairing", "healthy"),
        moved(500.0, "healthy", "degraded"),
    )
    sums = counted(found, "corral_gpu_phase_seconds_sum")
    assert sums == {(("state", "draining"),): 30, (("state", "repairing"),): 60}


def test_a_phase_whose_begin_was_not_seen_is_not_timed() -> None:
    found = told(moved(30.0, "draining", "repairing"), moved(90.0, "repairing", "healthy"))
    assert counted(found, "corral_gpu_phase_seconds_count") == {(("state", "repairing"),): 1}


def test_a_phase_that_began_while_another_controller_decided_is_not_timed() -> None:
    found = told(moved(0.0, "healthy", "draining"), moved(9000.0, "repairing", "healthy"))
    assert counted(found, "corral_gpu_phase_seconds_count") == {}


def test_ended_repairs_are_counted_by_attempt() -> None:
    fifth = replace(repair(2, 1.0, ActionState.FAILED), attempt=5)
    found = told(repair(1, 0.0, ActionState.RUNNING), repair(1, 1.0, ActionState.DONE), fifth)
    assert counted(found, "corral_repair_attempts_total") == {
        (("attempt", "1"), ("of", "reset_gpu"), ("state", "done")): 1,
        (("attempt", "3 or more"), ("of", "reset_gpu"), ("state", "failed")): 1,
    }


def test_the_first_action_of_its_kind_is_an_increase() -> None:
    drained = (("of", "drain"), ("state", "done"))
    assert told()["corral_action_moves_total", drained] == 0
