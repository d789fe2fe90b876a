"""What was only said is counted by rule, and by the level that would have done it."""

from msgspec.structs import replace

from controller.pages.would import would
from tests.controller.showcase import HOLD, REBOOT
from vocab.states import ActionState, Level


def test_what_a_higher_level_would_have_done_is_counted_by_rule_and_level() -> None:
    held = replace(HOLD, op="would_place", rule="xid:79", reason="level observe allows no hold")
    later = replace(held, id="h-2", at=held.at + 5)
    boot = replace(REBOOT, state=ActionState.WOULD, rule="catalogue/xid:79", why="level observe")
    told = would([held, boot, later, HOLD, REBOOT])
    assert [(each.rule, each.of, each.level, each.times, each.places) for each in told] == [
        ("xid:79", "hold", Level.CORDON, 2, 1),
        ("xid:79", "reboot_node", Level.REPAIR, 1, 1),
    ]
    assert told[0].last == later.at
