"""A gateway's word about nodes: reached if anything there answers, not reached if nothing does, else no word."""

import platform

import pytest

from engine.gateway.reach import reached
from engine.gateway.table import Listed, Standing, Table, merge, met
from tests.engine.gateway.stand import Stand


def table(**standings: Standing) -> Table:
    """Replicas that stand so, ``a…`` on node ``na``, ``b…`` on ``nb``."""
    listed = [Listed(replica=name, deployment="chat", node=f"n{name[0]}", url=f"http://h/{name}") for name in standings]
    made = merge(Table(), listed, 0.0)
    for name, standing in standings.items():
        made = met(made, name, standing, 1.0)
    return made


@pytest.mark.parametrize(
    ("standings", "told"),
    [
        ({"a1": Standing.READY}, {"na": True}),
        ({"a1": Standing.FENCED, "b1": Standing.SILENT}, {"na": True, "nb": False}),
        ({"a1": Standing.SILENT, "a2": Standing.LOADING}, {"na": True}),
        ({"a1": Standing.SILENT, "a2": Standing.REFUSED}, {"na": False}),
        ({"a1": Standing.SILENT, "a2": Standing.UNSEEN}, {}),  # nobody has asked the other one yet
        ({}, {}),
    ],
)
def test_a_node_is_reached_if_anything_there_answers(standings: dict[str, Standing], told: dict[str, bool]) -> None:
    assert reached(table(**standings).entries) == told


def test_a_replica_without_a_node_or_an_address_says_nothing() -> None:
    made = merge(Table(), [Listed(replica="a1", deployment="chat", url="http://h/1")], 0.0)
    made = merge(made, [Listed(replica="b1", deployment="chat", node="nb", url="")], 0.0)
    assert reached(made.entries) == {}


async def test_the_controller_is_told_under_the_name_of_the_machine(stand: Stand) -> None:
    await stand.serve("r1")
    await stand.until(lambda: any(body["nodes"] == {"n1": True} for body in stand.controller.reaches), "a report")
    assert {body["by"] for body in stand.controller.reaches} == {platform.node()}
