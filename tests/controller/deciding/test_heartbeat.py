"""A heartbeat that tells nothing new is answered at once; what tells something: ``controller/api/test_beats``."""

from pathlib import Path

import msgspec

from tests.controller.house import batch, house


async def test_heartbeat_that_tells_nothing_new_waits_for_no_turn(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        await home.post("agent/batch", batch())
        before = await home.get("fleet")
        home.inside.thinking.cancel()  # nobody takes a turn any more
        ack = await home.post("agent/batch", msgspec.structs.replace(batch(), facts=None))
        assert ack["position"] == 0
        assert ack["want_facts"] is False
        assert (await home.get("fleet"))["seq"] == before["seq"]
