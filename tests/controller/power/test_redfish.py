"""Power by Redfish, against a BMC that answers as DMTF's schema has it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from controller.power.config import PowerConfig
from controller.power.redfish import Redfish
from tests.fakes.redfish import PASSWORD, USER, Bmc
from vocab.errors import ConfigError, Refused, Unreachable


@asynccontextmanager
async def reached(folder: Path, bmc: Bmc, **more: Any) -> AsyncIterator[Redfish]:
    secret = folder / "bmc.password"
    secret.write_text(more.pop("password", PASSWORD) + "\n")
    secret.chmod(more.pop("mode", 0o600))
    runner = web.AppRunner(bmc.app())
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port, *_ = runner.addresses[0]
    base = f"http://{host}:{port}"
    config = PowerConfig(means="redfish", address=base, user=USER, password_file=str(secret), nodes=("n1",), **more)
    try:
        yield Redfish(config, base, look_s=0.01, busy_s=0.01)
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    ("allowed", "state", "plan", "resets"),
    [
        (["On", "ForceOff", "ForceRestart", "PowerCycle"], "On", "PowerCycle", ["PowerCycle"]),
        (["On", "ForceOff", "ForceRestart"], "On", "ForceOff, On", ["ForceOff", "On"]),
        (["On", "ForceOff", "PowerCycle"], "Off", "On", ["On"]),
    ],
)
async def test_the_power_goes_and_comes_back_by_what_the_bmc_allows(
    tmp_path: Path, allowed: list[str], state: str, plan: str, resets: list[str]
) -> None:
    bmc = Bmc()
    bmc.allowed, bmc.state = allowed, state
    async with reached(tmp_path, bmc) as power:
        means = await power.plan()
        assert (means, bmc.resets) == (plan, [])  # to look changes nothing
        await power.cycle(means)
    assert (bmc.resets, bmc.state) == (resets, "On")


async def test_what_is_allowed_may_stand_in_its_action_info(tmp_path: Path) -> None:
    bmc = Bmc()
    bmc.by_action_info = True
    async with reached(tmp_path, bmc) as power:
        assert await power.plan() == "PowerCycle"


@pytest.mark.parametrize(
    ("allowed", "said"), [(["ForceRestart", "Nmi"], "none takes the power away"), ([], "no resets")]
)
async def test_a_warm_restart_is_no_power_cycle(tmp_path: Path, allowed: list[str], said: str) -> None:
    bmc = Bmc()
    bmc.allowed = allowed
    async with reached(tmp_path, bmc) as power:
        with pytest.raises(Refused, match=said):
            await power.plan()


@pytest.mark.parametrize("status", [200, 202, 204])
async def test_each_answer_of_success_is_one(tmp_path: Path, status: int) -> None:
    bmc = Bmc()
    bmc.answers, bmc.task_states = [status], ["New", "Running", "Completed"]
    async with reached(tmp_path, bmc) as power:
        await power.cycle("PowerCycle")
    assert bmc.resets == ["PowerCycle"]


async def test_a_task_that_ends_badly_says_why(tmp_path: Path) -> None:
    bmc = Bmc()
    bmc.answers, bmc.task_states = [202], ["Running", "Exception"]
    async with reached(tmp_path, bmc) as power:
        with pytest.raises(Refused, match="ended as Exception: the reset is Exception"):
            await power.cycle("PowerCycle")


async def test_a_refusal_is_told_in_the_bmcs_own_words(tmp_path: Path) -> None:
    bmc = Bmc()
    bmc.answers = [400]
    async with reached(tmp_path, bmc) as power:
        with pytest.raises(Refused, match="400: PowerCycle is not supported in this state"):
            await power.cycle("PowerCycle")
    assert bmc.resets == []


async def test_one_that_is_busy_is_asked_again_and_resets_once(tmp_path: Path) -> None:
    bmc = Bmc()
    bmc.answers = [503, 503, 204]
    async with reached(tmp_path, bmc) as power:
        await power.cycle("PowerCycle")
    assert bmc.resets == ["PowerCycle"]


async def test_one_that_stays_busy_is_given_up(tmp_path: Path) -> None:
    bmc = Bmc()
    bmc.answers, bmc.retry_after = [503] * 9, None
    async with reached(tmp_path, bmc) as power:
        with pytest.raises(Refused, match="too busy"):
            await power.cycle("PowerCycle")
    assert len(bmc.answers) == 6


async def test_a_failure_of_the_bmc_leaves_open_what_became_of_it(tmp_path: Path) -> None:
    bmc = Bmc()
    bmc.answers = [500]
    async with reached(tmp_path, bmc) as power:
        with pytest.raises(Unreachable):
            await power.cycle("PowerCycle")


async def test_a_wrong_password_is_refused_and_not_told(tmp_path: Path) -> None:
    bmc = Bmc()
    async with reached(tmp_path, bmc, password="gue55") as power:
        with pytest.raises(Refused, match="user or password") as refusal:
            await power.plan()
    assert "gue55" not in str(refusal.value)


async def test_a_password_that_others_may_read_is_not_used(tmp_path: Path) -> None:
    async with reached(tmp_path, Bmc(), mode=0o644) as power:
        with pytest.raises(ConfigError, match="others can read"):
            await power.plan()


async def test_several_systems_need_a_name(tmp_path: Path) -> None:
    bmc = Bmc()
    bmc.systems = ["/redfish/v1/Systems/1", "/redfish/v1/Systems/2"]
    async with reached(tmp_path, bmc) as power:
        with pytest.raises(Refused, match="2 systems"):
            await power.plan()
    async with reached(tmp_path, bmc, system="/redfish/v1/Systems/1") as power:
        assert await power.plan() == "PowerCycle"


async def test_the_password_goes_to_the_bmc_and_nowhere_else(tmp_path: Path) -> None:
    bmc = Bmc()
    bmc.systems = ["http://elsewhere.example/redfish/v1/Systems/1"]
    async with reached(tmp_path, bmc) as power:
        with pytest.raises(Refused, match="goes nowhere else"):
            await power.plan()


async def test_what_was_cut_short_is_completed_only_if_it_is_off(tmp_path: Path) -> None:
    bmc = Bmc()
    async with reached(tmp_path, bmc) as power:
        await power.complete()
        assert bmc.resets == []
        bmc.state = "Off"
        await power.complete()
    assert bmc.resets == ["On"]


async def test_a_bmc_that_is_not_there_is_unreachable(tmp_path: Path) -> None:
    secret = tmp_path / "bmc.password"
    secret.write_text(PASSWORD)
    secret.chmod(0o600)
    address = "http://127.0.0.1:9"
    config = PowerConfig(means="redfish", address=address, user=USER, password_file=str(secret), nodes=("n1",))
    with pytest.raises(Unreachable, match="cannot be reached"):
        await Redfish(config, address).plan()


@pytest.mark.parametrize(
    "system",
    [
        {"Actions": []},
        {"Actions": {"#ComputerSystem.Reset": {"target": "/r", "ResetType@Redfish.AllowableValues": 7}}},
        {"Actions": {"#ComputerSystem.Reset": {"target": "/r", "@Redfish.ActionInfo": "//[odd"}}},
        {"Actions": {"#ComputerSystem.Reset": {"target": "/r", "@Redfish.ActionInfo": "/redfish/v1/Systems/info"}}},
    ],
)
async def test_a_bmc_of_odd_answers_is_refused(tmp_path: Path, system: dict[str, Any]) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.json_response({"Parameters": ["odd"]} if request.path.endswith("info") else system)

    class Odd(Bmc):
        def app(self) -> web.Application:
            app = web.Application()
            app.router.add_get("/{path:.*}", answer)
            return app

    async with reached(tmp_path, Odd(), system="/redfish/v1/Systems/1") as power:
        with pytest.raises(Refused):
            await power.plan()


async def test_systems_that_are_no_list_are_refused(tmp_path: Path) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.json_response({"Members": None})

    class Odd(Bmc):
        def app(self) -> web.Application:
            app = web.Application()
            app.router.add_get("/{path:.*}", answer)
            return app

    async with reached(tmp_path, Odd()) as power:
        with pytest.raises(Refused, match="0 systems"):
            await power.plan()
