"""What is kept of a fault: the report comes from a real helper with small programs in the place of NVIDIA's."""

import asyncio
import os
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from agent.evidence_routes import EvidenceRoutes
from agent.executor.evidence import KEPT, NO_REPORT, REPORT, Evidence
from agent.roothelper.duty import Duty
from agent.roothelper.limits import Ledger
from agent.roothelper.programs import Programs
from agent.roothelper.real import RealMachine
from agent.roothelper.requests import AnyReply, AnyRequest
from vocab.clock import SystemClock
from vocab.errors import Unreachable


class Helper:
    def __init__(self, folder: Path) -> None:
        self.tool = folder / "nvidia-bug-report.sh"
        machine = RealMachine(folder / "root", Programs(bug_report=self.tool))
        self.duty = Duty(machine, (), folder / "PAUSE", Ledger(folder / "limits.json"), SystemClock())
        self.gone = False

    def reports(self, body: str) -> None:
        self.tool.write_text(f"#!/bin/sh\n{body}\n")
        self.tool.chmod(0o755)

    @property
    def asked(self) -> str:
        return self.tool.with_suffix(".asked").read_text()

    async def ask(self, request: AnyRequest) -> AnyReply:
        if self.gone:
            raise Unreachable("nobody listens")
        return await asyncio.to_thread(self.duty.perform, request)


@pytest.fixture
def helper(tmp_path):
    return Helper(tmp_path)


@pytest.fixture
def kept(tmp_path, helper):
    return made(tmp_path, helper)


def made(folder, helper, **more):
    return Evidence(folder / "evidence", helper, lambda: [b"3,1,5,-;NVRM: Xid\n"], lambda: b"{}", **more)


def names(evidence, order="a-1"):
    return {file.name for file in evidence.files(order)}


def why(tmp_path, order="a-1"):
    return (tmp_path / "evidence" / order / NO_REPORT).read_text()


async def test_the_report_is_taken_over_from_root_whole(helper, kept, tmp_path):
    helper.reports('head -c 1300000 /dev/urandom | tee "$2.gz" > /dev/null')
    await kept.gather("a-1", 60.0)
    assert names(kept) == {"readings.json", "kernel.log", REPORT}
    [root] = (tmp_path / "root").iterdir()
    assert (tmp_path / "evidence/a-1" / REPORT).read_bytes() == root.read_bytes()
    assert root.stat().st_size == 1_300_000


async def test_a_report_that_hangs_is_ended_and_named(helper, tmp_path):
    kept = made(tmp_path, helper, least_s=0.2)
    helper.reports("sleep 600")
    await kept.gather("a-1", 0.3)
    assert "did not end within" in why(tmp_path)
    assert names(kept) == {"readings.json", "kernel.log", NO_REPORT}


async def test_a_report_without_bound_is_ended_and_named(helper, kept, tmp_path):
    helper.reports('exec truncate --size=3G "$2.gz"')
    await kept.gather("a-1", 60.0)
    assert names(kept) == {"readings.json", "kernel.log", NO_REPORT}
    assert list((tmp_path / "root").iterdir()) == []


async def test_a_report_that_is_too_large_to_hand_over_is_named_and_stays_with_root(helper, kept, tmp_path):
    helper.reports('exec truncate --size=100M "$2.gz"')
    await kept.gather("a-1", 60.0)
    assert "100M" not in why(tmp_path)
    assert "104857600 bytes, more than" in why(tmp_path)


async def test_a_node_without_the_tool_or_without_a_helper_says_so(helper, kept, tmp_path):
    await kept.gather("a-1", 60.0)
    assert "is not installed" in why(tmp_path)
    helper.gone = True
    await kept.gather("a-2", 60.0)
    assert "nobody listens" in why(tmp_path, "a-2")


async def test_only_so_much_is_kept_and_the_newest_stays(helper, tmp_path):
    kept = made(tmp_path, helper)
    for number in range(KEPT + 5):
        await kept.gather(f"a-{number}", 0.0)
        os.utime(tmp_path / "evidence" / f"a-{number}", (number, number))
    assert len(list((tmp_path / "evidence").iterdir())) == KEPT
    kept = made(tmp_path, helper, most_bytes=1000)
    helper.reports('head -c 2000 /dev/zero > "$2.gz"')
    await kept.gather("a-99", 60.0)
    assert [path.name for path in (tmp_path / "evidence").iterdir()] == ["a-99"]


async def test_it_is_served_piece_by_piece_and_taken_once(helper, kept):
    helper.reports(f'echo x >> "{helper.tool.with_suffix(".asked")}"; echo report > "$2.gz"')
    app = web.Application()
    EvidenceRoutes(kept).add_to(app)
    async with TestClient(TestServer(app)) as client:
        assert (await client.get("/api/v1/evidence/a-1")).status == 404
        for _ in range(2):
            told = await (await client.post("/api/v1/evidence/a-1")).json()
        assert {file["name"]: file["bytes"] for file in told["files"]}[REPORT] == len("report\n")
        assert await (await client.get(f"/api/v1/evidence/a-1/{REPORT}")).read() == b"report\n"
        assert (await client.get("/api/v1/evidence/a-1")).status == 200
        for path in ("a-1/other", "a-1/%2e%2e", "a-2/kernel.log", "%2e%2e", "..%2f..", ".hidden"):
            assert (await client.get(f"/api/v1/evidence/{path}")).status == 404, path
    assert helper.asked == "x\n"
