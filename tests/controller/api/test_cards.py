"""The ledger of cards over HTTP: in pages, and one board's whole history."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from controller.deciding.mind import real_core
from tests.controller.api.test_paging import walk
from tests.controller.house import Keys, batch, event, facts, house, uuid
from vocab.errors import Refused
from vocab.events import Severity
from vocab.messages import NodeFacts


def moved(node: str, serial: str = "165") -> NodeFacts:
    told = facts(node=node, gpus=2)
    return replace(told, gpus=tuple(replace(gpu, serial=serial if gpu.index == 0 else None) for gpu in told.gpus))


async def test_cards_come_in_pages_by_uuid(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        await home.post("agent/batch", batch(facts=facts(gpus=5)))
        pages = await walk(home, "cards", limit=2)
        assert [[card["uuid"] for card in page] for page in pages] == [
            [uuid(0), uuid(1)],
            [uuid(2), uuid(3)],
            [uuid(4)],
        ]
        assert await home.get("cards", serial="165") == []


async def test_a_card_tells_its_places_and_its_faults_wherever_they_were(tmp_path: Path, database: Keys) -> None:
    async with house(tmp_path, **database, make_core=real_core) as home:
        await home.post("agent/batch", batch(event(1), event(2), facts=moved("n1")))
        await home.post("agent/batch", batch(facts=facts(gpus=0)))
        news: dict[str, Any] = {"node": "n2", "session": "s2", "facts": moved("n2")}
        await home.post("agent/batch", batch(event(3, node="n2", code="xid:31"), **news))
        told = await home.get("cards/165")
        assert [place["node"] for place in told["places"]] == ["n1", "n2"]
        assert [(each["code"], each["events"]) for each in told["faults"]] == [("xid:79", 2), ("xid:31", 1)]
        assert await home.get(f"cards/{uuid(0)}") == told


async def test_what_was_injected_or_is_only_information_is_no_fault_of_a_card(tmp_path: Path, database: Keys) -> None:
    spoken = replace(event(5), text='a line that says "injected":true')
    made_up = (replace(event(1), injected=True), replace(event(2), injected=True, drill=True))
    told = replace(event(3), severity=Severity.INFO)
    async with house(tmp_path, **database, make_core=real_core) as home:
        await home.post("agent/batch", batch(*made_up, told, event(4), spoken, facts=moved("n1")))
        assert [(each["code"], each["events"]) for each in (await home.get("cards/165"))["faults"]] == [("xid:79", 2)]


async def test_a_card_does_not_go_to_a_node_that_only_claims_it_not_even_over_a_restart(
    tmp_path: Path, database: Keys
) -> None:
    claim: dict[str, Any] = {"node": "n0", "session": "s2", "facts": moved("n0")}
    for once_more in range(2):
        async with house(tmp_path, **database, make_core=real_core) as home:
            if not once_more:
                await home.post("agent/batch", batch(facts=moved("n1")))
            await home.post("agent/batch", batch(**claim))
            assert [card["node"] for card in await home.get("cards")] == ["n1", "n1"]
            (n0, n1) = await home.get("nodes")
            assert ([len(node["gpus"]) for node in (n0, n1)]) == [0, 2]
            assert {each["code"] for each in n0["conditions"]} == {"gpu_claimed_twice"}
    async with house(tmp_path, **database, make_core=real_core) as home:
        await home.post("agent/batch", batch(facts=facts(gpus=0)))
        await home.post("agent/batch", batch(**claim))
        assert [card["node"] for card in await home.get("cards")] == ["n0", "n0"], "it has moved"
        assert [node["conditions"] for node in await home.get("nodes")] == [[], []]


async def test_an_unknown_card_is_not_found(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        with pytest.raises(Refused, match=r"no card '166'.*/api/v1/cards"):
            await home.get("cards/166")


async def test_a_lemon_is_told_with_its_reasons_once_its_days_are_rolled_up(tmp_path: Path, database: Keys) -> None:
    from controller.store.records import Write
    from vocab.clock import VirtualClock
    from vocab.events import epoch_s
    from vocab.lines import EventLine, Subject

    began = epoch_s(str(event(1).at))
    clock = VirtualClock(began)
    codes = ("xid:79", "xid:48", "xid:95", "xid:64", "xid:119")
    lines = [
        EventLine(at=began - day * 86_400.0, subject=Subject(gpu=uuid(0)), event=event(day, code=codes[day % 5]))
        for day in range(20)
    ]
    async with house(tmp_path, **database, clock=clock) as home:
        await home.post("agent/batch", batch(facts=facts()))
        await home.inside.store.commit(Write(at=began, lines=lines))
        await home.inside.housekeeping.roll_up()
        (found,) = await home.get("lemons", all="true")
        assert (found["gpu"], found["lemon"]) == (uuid(0), True)
        assert [signal["signal"] for signal in found["signals"]] == ["fault_days", "fault_codes"]


async def test_lemons_are_judged_once_an_hour_and_by_the_thresholds_of_the_configuration(tmp_path: Path) -> None:
    from controller.core.fleet.lemons import Thresholds
    from controller.store.records import Write
    from vocab.clock import VirtualClock
    from vocab.events import epoch_s
    from vocab.lines import EventLine, Subject

    began = epoch_s(str(event(1).at))
    clock = VirtualClock(began)
    lines = [
        EventLine(at=began - day * 86_400.0, subject=Subject(gpu=uuid(0)), event=event(day, code="xid:79"))
        for day in range(20)
    ]
    async with house(tmp_path, clock=clock, lemons=Thresholds(score=1.0, signals=1)) as home:
        await home.post("agent/batch", batch(facts=facts()))
        assert await home.get("lemons") == []
        await home.inside.store.commit(Write(at=began, lines=lines))
        await home.inside.housekeeping.roll_up()
        assert await home.get("lemons") == []
        await home.inside.housekeeping.tell_lemons()
        (found,) = await home.get("lemons")
        assert (found["gpu"], found["lemon"]) == (uuid(0), True)
        assert "corral_lemons{board=" in (await home.raw("GET", "/metrics"))[1]
