"""``corral card`` and ``corral lemons`` against a controller."""

import asyncio
from pathlib import Path

from click.testing import CliRunner, Result

from controller.deciding.mind import real_core
from corral.__main__ import cli
from tests.controller.api.test_cards import moved
from tests.controller.house import House, batch, event, house, uuid


async def say(home: House, *words: str) -> Result:
    given = [*words, "--url", home.base]
    return await asyncio.to_thread(CliRunner().invoke, cli, given, standalone_mode=False)


async def test_a_card_is_told_by_serial_number_or_as_a_gpu(tmp_path: Path) -> None:
    async with house(tmp_path, make_core=real_core) as home:
        await home.post("agent/batch", batch(event(1), facts=moved("n1")))
        told = (await say(home, "card", "165")).output
        assert "serial 165" in told
        assert f"n1 0000:10:00  {uuid(0)[:12]}" in told
        assert "1  xid:79" in told
        assert (await say(home, "card", uuid(0))).output == told
        assert (await say(home, "card", "n1/0")).output == told
        assert str((await say(home, "card", "166")).exception).startswith("no board has the serial number '166'")


async def test_no_lemon_is_said_so(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        assert (await say(home, "lemons")).output == "No card is a lemon; --all lists those that stand out.\n"
