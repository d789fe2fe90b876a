"""A recording of a live drill, played again, leads to the decisions that the live controller took."""

import asyncio
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from corral.replay import replay
from tests.e2e.fleet import Fleet, fleet

pytestmark = pytest.mark.e2e
Json = dict[str, Any]


def decisions(lines: Iterable[Json]) -> list[str]:
    """Holds, incidents and actions, once each: what was decided, about whom, and where a replica was to start.

    That an order is *running* decides nothing: it is what a look happens to meet between its beginning and its end,
    and the link to the controller and the recording look at different moments.
    """
    said: dict[str, None] = {}
    for line in lines:
        subject = next(iter(line["subject"].values()), "fleet")
        if line["kind"] == "hold":
            said[f"hold {line['op']} on {subject} by {line['owner']}"] = None
        elif line["kind"] == "incident":
            said[f"incident {line['code']} {line['state']} on {subject}"] = None
        elif line["kind"] == "action" and line["state"] != "running":
            where = " ".join((line.get("target") or {}).get("gpus", ()))
            said[f"{line['of']} {line['state']} of {subject} {where}".rstrip()] = None
    return list(said)


async def is_over(running: Fleet, uuid: str) -> list[Json] | None:
    """The story of the GPU, once its replica is replaced and gone and only a person's leave is awaited."""
    story = await running.explain(uuid)
    told = decisions(story)
    drained = any(line.startswith("drain done") for line in told)
    waits = any(line.startswith("reboot_node waiting") for line in told)
    return story if drained and waits and await running.all_ready() else None


async def test_a_recorded_drill_is_decided_as_it_was_live(tmp_path: Path) -> None:
    async with fleet(tmp_path / "fleet", real_engine=False) as running:
        gpu = await running.gpu_serving("chat")
        await running.drill("xid", gpu["index"], code=79)
        story = await running.until("the drill is over", lambda: is_over(running, gpu["uuid"]))
        recorded = await asyncio.to_thread(running.corral, "record", "--agent", running.plan.agent)
    assert recorded.returncode == 0, recorded.stderr
    recording = tmp_path / "drill.jsonl"
    recording.write_text(recorded.stdout)
    out, err = io.StringIO(), io.StringIO()
    assert replay([recording], None, as_json=True, out=out, err=err) == 0, err.getvalue()
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    since = next(n for n, line in enumerate(lines) if line["kind"] == "event" and gpu["uuid"] in str(line))
    for kind in ("incident", "hold", "action"):  # of one moment a replay tells one kind after the other
        live = decisions(line for line in story if line["kind"] == kind)
        again = decisions(line for line in lines[since:] if line["kind"] == kind)
        assert live
        assert [line for line in again if line in live] == live
        assert [line for line in again if gpu["uuid"] in line] == [line for line in live if gpu["uuid"] in line]
