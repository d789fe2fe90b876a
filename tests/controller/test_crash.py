"""Killed at any moment, the controller has everything that it acknowledged."""

import asyncio
import subprocess
from pathlib import Path
from typing import Any

from tests.controller.house import Keys, batch, event
from tests.controller.process import running, toml, write_config
from tests.ports import free_ports
from vocab.errors import CorralError
from wire.client import Client

KILLED_AFTER = 25  # batches: the kill falls into the middle of the stream


async def ready(client: Client) -> None:
    async with asyncio.timeout(60):
        while True:
            try:
                await client.call("GET", "/readyz", Any)
            except CorralError:
                await asyncio.sleep(0.05)
            else:
                return


async def whole(client: Client, count: int) -> list[dict[str, Any]]:
    """All events, once there are so many: a killed controller leads for some time more, and what comes then waits."""
    async with asyncio.timeout(60):
        while len(events := await client.call("GET", "/api/v1/events", Any, limit=1000)) < count:
            await asyncio.sleep(0.05)
    return events


async def report_until_killed(client: Client, process: subprocess.Popen[str]) -> int:
    """Send one event after another, and kill the controller while one is on its way; the last position it gave."""
    acknowledged = 0
    while True:
        number = acknowledged + 1
        report = batch(event(number, code="xid:13"), first=number)
        sending = asyncio.create_task(client.call("POST", "/api/v1/agent/batch", Any, report))
        if number == KILLED_AFTER:
            await asyncio.sleep(0)
            process.kill()
        try:
            acknowledged = (await sending)["position"]
        except CorralError:
            return acknowledged


async def test_kill_in_the_middle_of_ingest_loses_nothing_acknowledged(tmp_path: Path, database: Keys) -> None:
    (port,) = free_ports(1)
    config = write_config(tmp_path, port, toml(database))
    with running(config) as process:
        async with Client(f"http://127.0.0.1:{port}") as client:
            await ready(client)
            acknowledged = await report_until_killed(client, process)
    assert acknowledged >= KILLED_AFTER - 1
    with running(config):
        async with Client(f"http://127.0.0.1:{port}") as client:
            await ready(client)
            events = await client.call("GET", "/api/v1/events", Any, limit=1000)
            assert len(events) in {acknowledged, acknowledged + 1}  # one may be stored and not answered
            again = batch(*(event(number, code="xid:13") for number in range(1, acknowledged + 2)))
            ack = await client.call("POST", "/api/v1/agent/batch", Any, again)
            assert ack["position"] == acknowledged + 1
            events = await whole(client, acknowledged + 1)
            assert [each["text"] for each in events] == [f"fault {n}" for n in range(1, acknowledged + 2)]
