"""``?dry_run=1``: the same door, the same body; nothing is done, and the answer says what would be."""

from pathlib import Path
from typing import Any

import pytest

from controller.config import DeploymentConfig
from controller.deciding.mind import real_core
from tests.controller.house import House, house
from tests.controller.node import break_gpu

CHAT = DeploymentConfig(name="chat", replicas=2, model="m")


async def stored(home: House) -> Any:
    return await home.get("holds"), await home.get("actions"), await home.get("audit"), home.inside.conductor.seq


async def test_no_order_does_anything_on_a_dry_run(tmp_path: Path) -> None:
    async with house(tmp_path, make_core=real_core, deployments=(CHAT,)) as home:
        _, gpu = await break_gpu(home)
        (hold,) = await home.get("holds")
        before = await stored(home)
        for method, path, body in (
            ("POST", "holds", {"subject": {"gpu": gpu}, "reason": "fan"}),
            ("DELETE", f"holds/{hold['id']}", {"reason": "x", "force": True}),
            ("POST", "drains", {"subject": {"node": "n1"}, "reason": "x"}),
            ("POST", "releases", {"subject": {"gpu": gpu}, "reason": "x"}),
            ("POST", "undo", {"since_s": 600, "reason": "x"}),
            ("POST", "discards", {"reason": "x"}),
            ("POST", "pause", {"reason": "x"}),
        ):
            answer = await home.call(method, f"/api/v1/{path}", Any, body, dry_run=1)
            assert answer["kind"] == "preview", path
        assert await stored(home) == before


async def test_an_undo_is_foretold_and_then_done_as_it_was_told(tmp_path: Path) -> None:
    async with house(tmp_path, make_core=real_core, deployments=(CHAT,)) as home:
        await break_gpu(home)
        (hold,) = await home.get("holds")
        ahead = await home.call("POST", "/api/v1/undo", Any, {"since_s": 600, "reason": "x"}, dry_run=1)
        assert [each["id"] for each in ahead["lifted"]] == [hold["id"]]
        done = await home.post("undo", {"since_s": 600, "reason": "a bad probe"})
        assert [line["id"] for line in done["lines"] if line["kind"] == "hold"] == [hold["id"]]
        assert await home.get("holds") == []
        assert [each["act"] for each in await home.get("audit")] == ["undo"]


@pytest.mark.parametrize("since", [0, -1, "soon"])
async def test_an_undo_of_no_time_is_wrong(tmp_path: Path, since: object) -> None:
    async with house(tmp_path, make_core=real_core) as home:
        status, _, _ = await home.raw("POST", "/api/v1/undo", json={"since_s": since, "reason": "x"})
        assert status == 400
