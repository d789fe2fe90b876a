"""How many GPUs a node is taken to have."""

from corral.survey.fleet import Board, Fleet


def test_a_node_whose_gpus_metrics_name_has_no_others() -> None:
    fleet = Fleet((), [Board(node="a", uuid=f"GPU-{index}", index=index) for index in range(4)])
    (facts,) = fleet.facts()
    assert len(facts.gpus) == fleet.size("a") == 4
    assert fleet.assumed == 0


def test_any_other_node_has_as_many_as_are_usual() -> None:
    assert Fleet((), (), gpus_per_node=2).size("b") == 2
