"""GET /api/v1/versions, and the command that prints it."""

import asyncio
import json
from pathlib import Path

from click.testing import CliRunner
from msgspec.structs import replace

from controller.deciding.mind import real_core
from corral.__main__ import cli
from tests.controller.house import batch, facts, house


async def test_the_matrix_is_served_and_printed(tmp_path: Path) -> None:
    async with house(tmp_path, make_core=real_core) as home:
        await home.post("agent/batch", batch(facts=replace(facts(), driver="535.54.03")))
        found = await home.get("versions")
        (driver,) = [part for part in found["parts"] if part["part"] == "driver"]
        assert [(each["version"], each["count"], each["usual"]) for each in driver["versions"]] == [
            ("535.54.03", 1, False)
        ]
        said = await asyncio.to_thread(CliRunner().invoke, cli, ["versions", "--url", home.base], standalone_mode=False)
        assert said.exception is None
        assert said.return_value == 1
        assert "known to go wrong" in said.output
        assert "535.54.03" in said.output
        as_json = await asyncio.to_thread(
            CliRunner().invoke, cli, ["versions", "--json", "--url", home.base], standalone_mode=False
        )
        assert json.loads(as_json.output) == found
