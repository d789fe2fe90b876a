"""``corral up`` as a person uses it: started in a terminal, stopped with Ctrl-C, started again."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agent.replicas.identity import arguments, pids
from tests.e2e.fleet import ROOT, fleet, free_base_port

pytestmark = pytest.mark.e2e


def processes_of(state: Path) -> list[tuple[str, ...]]:
    """Every process that has something of this state folder on its command line."""
    return [words for pid in pids() if pid != os.getpid() and str(state) in " ".join(words := arguments(pid))]


async def test_a_house_that_is_closed_leaves_no_process(tmp_path: Path) -> None:
    async with fleet(tmp_path, real_engine=False):
        assert len(processes_of(tmp_path)) >= 6  # controller, agent, gateway and three replicas
    assert processes_of(tmp_path) == []


async def test_a_house_that_was_killed_is_swept_by_the_next_one(tmp_path: Path) -> None:
    async with fleet(tmp_path, real_engine=False) as first:
        left = {pid for pid in pids() if str(tmp_path) in " ".join(arguments(pid))}
        first.house.abandon()
        async with fleet(tmp_path, real_engine=False):
            assert not [pid for pid in left if pid in set(pids()) and arguments(pid)]
    assert processes_of(tmp_path) == []


async def test_a_restart_of_the_house_is_a_reboot_that_ends_the_incident(tmp_path: Path) -> None:
    async with fleet(tmp_path, real_engine=False) as before:
        victim = await before.gpu_serving("chat")
        await before.drill("xid", victim["index"], code=79)

        async def held() -> bool:
            return bool(next(gpu for gpu in await before.gpus() if gpu["uuid"] == victim["uuid"])["holds"])

        await before.until("the policy's hold", held)
    async with fleet(tmp_path, real_engine=False) as after:

        async def released() -> bool:
            gpu = next(gpu for gpu in await after.gpus() if gpu["uuid"] == victim["uuid"])
            return gpu["holds"] == [] and gpu["conditions"] == [] and gpu["phase"] in {"in_service", "probation"}

        await after.until("the GPU released after the reboot", released)

        async def whole() -> bool:
            return len((await after.get("/api/v1/fleet"))["replicas"]) == 3

        await after.until("what the dead one served runs elsewhere and it is gone from the list", whole)


async def test_what_a_person_holds_is_served_from_elsewhere_after_a_restart(tmp_path: Path) -> None:
    async with fleet(tmp_path, real_engine=False) as before:
        held = await before.gpu_serving("chat")
        await before.post("/api/v1/holds", {"subject": {"gpu": held["uuid"]}, "reason": "a look at its riser"})
        assert await before.all_ready(), "what runs there serves on"
    async with fleet(tmp_path, real_engine=False) as after:  # opened: all replicas are ready
        gpu = next(gpu for gpu in await after.gpus() if gpu["uuid"] == held["uuid"])
        assert (gpu["replica"], [hold["owner"] for hold in gpu["holds"]]) == (None, ["operator"])
        log = (after.plan.logs / "gateway.log").read_text()
        assert "panic" not in log, "nothing has failed"


async def test_ctrl_c_stops_all_that_was_started(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "corral", "up", "--state", str(tmp_path), "--base-port", str(free_base_port())]
    up = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        deadline = asyncio.get_running_loop().time() + 120
        while len(processes_of(tmp_path)) < 5 and asyncio.get_running_loop().time() < deadline:
            assert up.poll() is None, up.stdout and up.stdout.read()
            await asyncio.sleep(0.1)
        up.send_signal(signal.SIGINT)
        output, _ = await asyncio.to_thread(up.communicate, timeout=60)
    finally:
        up.kill()
    assert up.returncode == 0, output
    assert "Traceback" not in output
    assert processes_of(tmp_path) == []


def test_a_taken_port_is_one_clear_line(tmp_path: Path) -> None:
    import socket

    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        door.listen()
        port = door.getsockname()[1]
        command = [sys.executable, "-m", "corral", "up", "--state", str(tmp_path), "--base-port", str(port)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    assert f"127.0.0.1:{port} cannot be used" in done.stderr
    assert "--base-port" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_state_folder_that_cannot_be_is_one_clear_line() -> None:
    command = [sys.executable, "-m", "corral", "up", "--state", "/dev/null/state"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    assert "/dev/null/state cannot be used" in done.stderr
    assert "Traceback" not in done.stderr
