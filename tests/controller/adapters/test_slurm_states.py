"""What sinfo says, in the forms of several versions; typed anew, with only the keys that are read."""

import json

import pytest

from controller.adapters.slurm.states import SlurmNode, boot_time, of_json, of_plain
from vocab.errors import Unreachable

OURS = "corral:h-1 xid:79: critical; it's | [so]"
OLD = {"nodes": [{"name": "n1", "state": "mixed", "state_flags": ["DRAIN"], "reason": OURS}]}
LIST = {"nodes": [{"name": "n1", "state": ["MIXED", "DRAIN"], "reason": OURS}]}
GROUPS = {
    "sinfo": [{"nodes": {"nodes": ["n1"]}, "node": {"state": ["MIXED", "DRAIN"]}, "reason": {"description": OURS}}]
}
DRAINING = SlurmNode("n1", frozenset({"MIXED", "DRAIN"}), OURS)


@pytest.mark.parametrize("body", [OLD, LIST, GROUPS], ids=["22.05", "23.02", "24.11"])
def test_json_of_every_version_is_one_node(body: object) -> None:
    assert of_json(json.dumps(body)) == [DRAINING]
    assert (DRAINING.is_drained, DRAINING.busy) == (True, True)


@pytest.mark.parametrize(
    ("word", "drained", "busy"),
    [
        ("idle", False, False),
        ("idle*", False, None),
        ("mixed", False, True),
        ("allocated", False, True),
        ("completing", False, True),
        ("drained", True, False),
        ("drained*", True, None),
        ("draining", True, True),
        ("draining@", True, True),
        ("down", False, None),
        ("down*", False, None),
        ("unknown", False, None),
        ("planned", False, False),
        ("idle~", False, None),
    ],
)
def test_a_word_of_the_plain_form_says_what_is_known(word: str, drained: bool, busy: bool | None) -> None:
    (node,) = of_plain(f"n1|{word}|{OURS}\n")
    assert (node.is_drained, node.busy, node.reason) == (drained, busy, OURS)


def test_a_node_of_two_partitions_is_one_node_and_none_is_no_reason() -> None:
    assert of_plain("n1|idle|none\nn1|idle|none\n") == [SlurmNode("n1", frozenset({"IDLE"}), "")]


@pytest.mark.parametrize("text", ["", "slurm_load_node: Unable to contact", '{"meta": {}}', '{"nodes": [{}]}'])
def test_what_is_no_answer_is_no_empty_cluster(text: str) -> None:
    with pytest.raises(Unreachable):
        of_json(text)


def test_errors_without_nodes_are_told() -> None:
    with pytest.raises(Unreachable, match="Unable to contact"):
        of_json(json.dumps({"nodes": [], "errors": [{"error": "Unable to contact slurm controller"}]}))


def test_when_slurmctld_began_is_read() -> None:
    assert (
        boot_time("Configuration data\nBOOT_TIME               = 2026-11-30T00:27:25\nX = 1\n") == "2026-11-30T00:27:25"
    )
    assert boot_time("") == ""
