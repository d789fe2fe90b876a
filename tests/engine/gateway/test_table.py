import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.gateway.table import (
    DEPLOYMENT_S,
    DOUBT_S,
    FORGET_S,
    SILENT_S,
    Listed,
    Standing,
    Table,
    merge,
    met,
    read,
    routable,
)

NOW = 100.0


def listed(replica: str, *, deployment: str = "chat", port: int | None = None, **more: object) -> Listed:
    url = f"http://127.0.0.1:{port or 7430 + int(replica[1:])}"
    return Listed(replica=replica, deployment=deployment, **{"url": url, **more})


def table(**standings: Standing) -> Table:
    """Replicas of ``chat`` that stand so at NOW, each of them ready once before."""
    made = merge(Table(), [listed(name, ready=True) for name in standings], NOW - 10.0)
    for name, standing in standings.items():
        made = met(made, name, standing, NOW)
    return made


def names(made: Table, deployment: str = "chat") -> list[str]:
    return [entry.replica for entry in routable(made, deployment).ready]


def test_a_replica_is_routable_once_it_has_shown_that_it_is_ready() -> None:
    made = merge(Table(), [listed("r1", ready=True)], NOW)
    assert names(made) == []
    assert names(read(made, "r1", Standing.READY, NOW, NOW)) == ["r1"]


@pytest.mark.parametrize("standing", set(Standing) - {Standing.READY})
def test_nothing_but_ready_is_routable(standing: Standing) -> None:
    assert names(table(r1=Standing.READY, r2=standing)) == ["r1"]


def test_a_probe_that_began_before_a_failed_request_does_not_undo_it() -> None:
    made = met(table(r1=Standing.READY), "r1", Standing.REFUSED, NOW + 1.0)
    assert names(read(made, "r1", Standing.READY, NOW + 0.9, NOW + 1.1)) == []
    assert names(read(made, "r1", Standing.READY, NOW + 1.1, NOW + 1.2)) == ["r1"]


def test_a_late_answer_is_doubt_and_long_silence_is_the_end() -> None:
    made = read(table(r1=Standing.READY), "r1", Standing.SILENT, NOW + 1.0, NOW + 2.0)
    assert names(made) == ["r1"]
    assert made.entries["r1"].doubted(NOW + 2.0 + DOUBT_S - 0.1)
    made = read(made, "r1", Standing.SILENT, NOW + SILENT_S, NOW + SILENT_S + 1.0)
    assert names(made) == []
    assert names(read(made, "r1", Standing.READY, NOW + 7.0, NOW + 7.1)) == ["r1"]


@pytest.mark.parametrize("answer", [[], [listed("r9", deployment="other", port=9999)]])
def test_a_controller_that_forgets_is_not_believed_while_the_replica_answers(answer: list[Listed]) -> None:
    made = merge(table(r1=Standing.READY), answer, NOW + FORGET_S)
    assert names(made) == ["r1"]
    assert "r1" not in merge(made, answer, NOW + FORGET_S + 1.0).entries


def test_what_is_listed_as_stopped_is_dropped_though_it_answers() -> None:
    made = merge(table(r1=Standing.READY, r2=Standing.READY), [listed("r1", state="stopped"), listed("r2")], NOW)
    assert names(made) == ["r2"]


def test_an_address_belongs_to_who_is_listed_there_now() -> None:
    made = merge(table(r1=Standing.READY), [listed("r2", deployment="pair", port=7431)], NOW)
    assert names(made) == []
    assert [*made.entries] == ["r2"]


def test_a_replica_that_moved_must_show_itself_again() -> None:
    made = merge(table(r1=Standing.READY), [listed("r1", port=7500)], NOW)
    assert made.entries["r1"].standing is Standing.UNSEEN


def test_a_list_without_an_address_keeps_the_one_that_is_known() -> None:
    made = merge(table(r1=Standing.READY), [listed("r1", url="")], NOW)
    assert made.entries["r1"].url == "http://127.0.0.1:7431"
    assert names(made) == ["r1"]


def test_a_deployment_without_replicas_is_known_for_a_while() -> None:
    made = merge(table(r1=Standing.READY), [listed("r1", state="stopped")], NOW)
    assert "chat" in merge(made, [], NOW + DEPLOYMENT_S).deployments
    assert "chat" not in merge(made, [], NOW + DEPLOYMENT_S + 1.0).deployments


R, F, D, L, X = Standing.READY, Standing.FENCED, Standing.DRAINING, Standing.LOADING, Standing.REFUSED


@pytest.mark.parametrize(
    ("standings", "panic", "used"),
    [
        ((R, R), False, 2),
        ((R, F), False, 1),  # half is enough
        ((F, F), True, 2),
        ((F,), True, 1),
        ((R, F, F), True, 3),
        ((R, X, X), True, 1),
        ((R, F, D), False, 1),  # what leaves does not count
        ((D, D), False, 0),
        ((R, L, L), True, 1),  # these have served before: their absence is a loss
    ],
)
def test_the_panic_floor_is_half_of_what_should_serve(standings: tuple[Standing, ...], panic: bool, used: int) -> None:
    found = routable(table(**{f"r{number}": standing for number, standing in enumerate(standings)}), "chat")
    assert found.panic is panic
    assert len(found.ready) + len(found.fenced) == used


def test_a_replacement_that_still_loads_calls_no_panic() -> None:
    made = merge(table(r1=F, r2=R), [listed("r1"), listed("r2"), listed("r3", state="starting")], NOW)
    made = read(made, "r3", Standing.LOADING, NOW, NOW)
    assert not routable(made, "chat").panic


@given(st.lists(st.sampled_from(Standing), max_size=8), st.booleans())
def test_fenced_replicas_are_used_in_a_panic_alone(standings: list[Standing], listing: bool) -> None:
    made = table(**{f"r{number}": standing for number, standing in enumerate(standings)})
    if listing:
        made = merge(made, [], NOW)
    found = routable(made, "chat")
    assert found.panic is (2 * len(found.ready) < found.counted)
    assert found.panic or not found.fenced
    assert {entry.standing for entry in found.fenced} <= {Standing.FENCED}
