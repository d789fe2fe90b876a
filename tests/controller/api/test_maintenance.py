"""Maintenance over HTTP: begun, listed, moved and ended, audited, and nothing of the node is told meanwhile."""

import time
from pathlib import Path
from typing import Any

import pytest

from controller.deciding.mind import real_core
from controller.notify.silence import is_silent
from tests.controller.house import batch, house, uuid
from vocab.errors import InputError, Refused
from vocab.lines import NoteLine, Subject


async def test_one_order_holds_the_node_until_its_time_and_another_ends_it(tmp_path: Path) -> None:
    async with house(tmp_path, make_core=real_core) as home:
        await home.post("agent/batch", batch())
        (node,) = [each["node"] for each in await home.get("nodes")]
        until = time.time() + 3600
        await home.post("maintenances", {"node": node, "until": until, "reason": "new fans"})
        (hold,) = await home.get("maintenances")
        assert (hold["owner"], hold["until"]) == ("maintenance", until)
        view = home.inside.conductor.look()
        assert view is not None
        about = NoteLine(at=0.0, subject=Subject(gpu=uuid(0)), code="needs_person", text="")
        assert is_silent(view, about)
        await home.call("DELETE", f"/api/v1/maintenances/{node}", Any, {"reason": "done"})
        assert await home.get("maintenances") == []
        assert [each["act"] for each in await home.get("audit")] == ["maintain", "maintained"]


async def test_a_time_that_has_passed_and_a_node_that_is_not_are_refused(tmp_path: Path) -> None:
    async with house(tmp_path, make_core=real_core) as home:
        await home.post("agent/batch", batch())
        (node,) = [each["node"] for each in await home.get("nodes")]
        with pytest.raises(InputError, match="to come"):
            await home.post("maintenances", {"node": node, "until": time.time() - 1, "reason": "x"})
        with pytest.raises(Refused):
            await home.post("maintenances", {"node": "n9", "until": time.time() + 60, "reason": "x"})
        with pytest.raises(Refused):
            await home.call("DELETE", f"/api/v1/maintenances/{node}", Any, {"reason": "done"})
