"""The agent's route, over a real socket, and the command line that asks it."""

import asyncio
import json

import pytest
from click.testing import CliRunner

from corral.__main__ import cli
from tests.agent.test_agent import configured, running
from vocab.diag import AnyTold, Checked, Ended
from wire.client import Client


async def corral(node, *arguments):
    """As a person types it; the controller of these tests does not exist."""
    env = {"CORRAL_AGENT_URL": node.config.address, "CORRAL_URL": "http://127.0.0.1:9", "COLUMNS": "160"}
    return await asyncio.to_thread(
        lambda: CliRunner().invoke(cli, ["diag", *arguments], env=env, standalone_mode=False)
    )


async def test_the_stream_tells_of_each_check_and_of_the_end(tmp_path):
    async with running(configured(tmp_path)) as node:
        await node.ready()
        gpu = node.agent.latest.seen.gpus[0].uuid
        async with Client(node.config.address) as client:
            told = [each async for each in client.lines("POST", "/api/v1/diag", AnyTold, {"gpus": [gpu]})]
        checks = {each.check.check: each.check.result for each in told if isinstance(each, Checked)}
        assert (checks["diag_open"], checks["canary"], checks["presence"]) == ("pass", "pass", "pass")
        assert told[-1] == Ended()


async def test_the_command_shows_a_table_and_its_exit_code_is_the_answer(tmp_path):
    async with running(configured(tmp_path)) as node:
        await node.ready()
        good = await corral(node, "0")
        assert good.return_value == 0
        assert "exact products" in good.output
        await node.drill(kind="corrupt", gpu=1)
        bad = await corral(node, "0", "1")
        assert bad.return_value == 1
        assert "silent_corruption" in bad.output
        await node.until(lambda: "silent_corruption" in {event.code for event in node.agent.latest.events.values()})


@pytest.mark.parametrize(
    ("fault", "check", "code"),
    [
        ({"kind": "xid", "code": 79}, "presence", "gpu_lost"),
        ({"kind": "xid", "code": 79}, "diag_open", "gpu_lost"),
        ({"kind": "ecc"}, "ecc", "ecc_uncorrectable"),
        ({"kind": "remap", "failed": True}, "remap", "remap_failed"),
        ({"kind": "pcie"}, "pcie", "pcie_width"),
        ({"kind": "link", "link": 3}, "links", "nvlink_down"),
    ],
)
async def test_a_fault_of_the_virtual_node_is_found(tmp_path, fault, check, code):
    async with running(configured(tmp_path)) as node:
        await node.ready()
        gpu = node.agent.latest.seen.gpus[0].uuid
        await node.drill(gpu=0, **fault)
        await node.until(lambda: code in {event.code for event in node.agent.latest.events.values()})
        found = json.loads((await corral(node, gpu, "--json")).stdout)
        assert (check, "problem", code) in {(each["check"], each["result"], each.get("code")) for each in found}


async def test_json_is_a_list_of_checks(tmp_path):
    async with running(configured(tmp_path)) as node:
        await node.ready()
        found = json.loads((await corral(node, "0", "--json")).stdout)
        assert {each["result"] for each in found} == {"pass"}


async def test_what_is_refused_and_what_is_not_there_have_their_own_exit_codes(tmp_path):
    async with running(configured(tmp_path)) as node:
        await node.ready()
        codes = {
            arguments: (await corral(node, *arguments)).exception.exit_code
            for arguments in (("0", "--grade", "medium"), ("99",))
        }
        assert codes == {("0", "--grade", "medium"): 4, ("99",): 2}
    gone = await corral(node, "0")
    assert gone.exception.exit_code == 3


async def test_a_burn_that_nobody_confirms_is_wrong_usage(tmp_path):
    async with running(configured(tmp_path)) as node:
        await node.ready()
        found = await corral(node, "0", "--grade", "burn")
        assert "--yes" in found.exception.message


async def test_medium_runs_on_a_gpu_that_the_node_itself_has_fenced(tmp_path):
    async with running(configured(tmp_path)) as node:
        await node.ready()
        gpu = node.agent.latest.seen.gpus[2].uuid
        await node.drill(kind="xid", code=48, gpu=2)
        await node.until(lambda: gpu in node.agent.supervisor.fenced)
        found = json.loads((await corral(node, "2", "--grade", "medium", "--json")).stdout)
        assert "diag_memory" in {each["check"] for each in found}
