"""What an order would lead to, in sentences."""

from controller.core.preview import Floor, Move, Preview
from controller.pages.foretold import foretold
from controller.pages.frame import NOBODY
from controller.pages.words import Names
from vocab.lines import Subject, Target


def test_of_a_group_it_says_what_is_on_each_node_and_that_all_of_it_leaves_together() -> None:
    where = Target(node="n1", gpus=("g0", "g1", "g2"), nodes=("n1", "n1", "n2"))
    move = Move(replica="wide-1", deployment="wide", where=where, waits="no GPU is free")
    told = foretold(Preview(order="drain", moves=(move,), groups={"wide-1": ("n1", "n2")}), Names(NOBODY))
    assert told == [
        "Moves wide-1 from n1 g0, g1 and n2 g2 and its replacement waits: no GPU is free, gone within 0 s",
        "wide-1 is a group: all of it leaves n1 and n2 together",
    ]


def test_what_would_be_refused_says_what_it_takes() -> None:
    floor = Floor(deployment="chat", ready=1, without=0, min_ready=1)
    seen = Preview(order="approve", refused="no", disrupts=(Subject(node="n1"), Subject(gpu="g0")), floors=(floor,))
    assert foretold(seen, Names(NOBODY)) == [
        "Stops node n1",
        "Stops g0",
        "chat: 1 ready, 0 without these before any replacement, floor 1: under its floor",
    ]
