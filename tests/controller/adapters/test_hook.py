"""A program of the operator's that ends replicas: what it is given, and what its exit code means."""

import json
import sys
from pathlib import Path

import pytest

from controller.adapters.config import HookConfig
from controller.adapters.hook import Hook
from controller.core.fleet.views import OwnerOrder
from vocab.errors import Refused, Unreachable
from vocab.lines import ActionLine, Subject
from vocab.states import ActionKind, ActionState

ORDER = OwnerOrder(
    by="hook",
    action=ActionLine(
        at=1.0,
        subject=Subject(replica="r1"),
        id="a-1",
        of=ActionKind.DRAIN,
        state=ActionState.ORDERED,
        token="1.7",
        incident="i-1",
        rule="catalogue/xid:95",
        policy="builtin-1",
        why="its owner is asked to end it",
    ),
    node="n1",
    replica="r1",
    deployment="chat",
    gpus=("GPU-1",),
)


def hook(folder: Path, body: str, **more: float) -> Hook:
    program = folder / "hook.py"
    program.write_text(body)
    return Hook(HookConfig(command=(sys.executable, str(program)), **more))


async def test_it_is_given_the_order_as_json(tmp_path: Path) -> None:
    out = tmp_path / "given"
    await hook(tmp_path, f"import sys, pathlib; pathlib.Path({str(out)!r}).write_text(sys.stdin.read())").act(ORDER)
    assert json.loads(out.read_text()) == {
        "do": "drain", "action": "a-1", "token": "1.7", "replica": "r1", "deployment": "chat", "node": "n1",
        "gpus": ["GPU-1"], "incident": "i-1", "why": "its owner is asked to end it",
    }  # fmt: skip


async def test_75_means_later_and_anything_else_no(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match="later"):
        await hook(tmp_path, "raise SystemExit(75)").act(ORDER)
    with pytest.raises(Refused, match="never on Fridays"):
        await hook(tmp_path, "import sys; sys.exit('never on Fridays')").act(ORDER)


async def test_one_that_does_not_end_is_killed_and_asked_again(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match="not ended within"):
        await hook(tmp_path, "import time; time.sleep(600)", answer_s=0.3).act(ORDER)


async def test_one_that_is_not_there_is_named() -> None:
    with pytest.raises(Unreachable, match="/no/such/hook cannot be run"):
        await Hook(HookConfig(command=("/no/such/hook",))).act(ORDER)
