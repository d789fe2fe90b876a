"""The helper's program under systemd's own socket activation, and what it says when it cannot serve."""

import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from agent.roothelper.client import SocketHelper
from agent.roothelper.requests import Ask, Denied, Reboot, Survey, Surveyed
from tests.programs import need
from vocab.errors import Unreachable

ROOT = Path(__file__).parents[3]


def configured(folder: Path, **changes: object) -> Path:
    usual: dict[str, object] = {
        "user": pwd.getpwuid(os.getuid()).pw_name, "state_dir": str(folder), "pause_file": str(folder / "PAUSE"),
        "services": ["nvidia-dcgm.service"], "idle_s": 0.5,
    }  # fmt: skip
    lines = [f"{key} = {value!r}" for key, value in (usual | changes).items()]
    (folder / "roothelper.toml").write_text("\n".join(lines) + "\n")
    return folder / "roothelper.toml"


async def test_systemds_socket_starts_it_it_serves_and_it_ends_when_nobody_comes(tmp_path):
    place = tmp_path / "door"
    activate = need("systemd-socket-activate", "apt-get install systemd")
    program = [sys.executable, "-P", "-m", "agent.roothelper", "--config", str(configured(tmp_path))]
    process = subprocess.Popen([activate, "-l", str(place), "-E", f"PYTHONPATH={ROOT}", *program], cwd=tmp_path)
    try:
        helper = SocketHelper(place)
        able = await patiently(helper)
        assert able.services == ("nvidia-dcgm.service",)
        assert isinstance(await helper.ask(Survey(gpus=())), Surveyed)
        (tmp_path / "PAUSE").touch()
        assert isinstance(await helper.ask(Reboot()), Denied)
        assert process.wait(timeout=60) == 0
    finally:
        process.kill()
        process.wait()


async def patiently(helper: SocketHelper):
    import asyncio

    async with asyncio.timeout(60):
        while True:
            try:
                return await helper.able()
            except Unreachable:
                await asyncio.sleep(0.05)


async def test_nobody_behind_the_socket_is_unreachable(tmp_path):
    with pytest.raises(Unreachable, match="does not answer"):
        await SocketHelper(tmp_path / "none").ask(Ask())


def test_started_by_hand_it_says_what_to_start_instead(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "agent.roothelper", "--config", str(configured(tmp_path))],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False, env={"PATH": os.environ["PATH"]},
    )  # fmt: skip
    assert done.returncode == 2
    assert "start corral-roothelper.socket" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_user_that_does_not_exist_and_an_unknown_key_stop_the_start(tmp_path):
    for changes, words in (({"user": "nobody-has-this-name"}, "there is no user"), ({"shell": "sh"}, "shell")):
        done = subprocess.run(
            [sys.executable, "-m", "agent.roothelper", "--config", str(configured(tmp_path, **changes))],
            cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
            env={"PATH": os.environ["PATH"], "LISTEN_FDS": "1"},
        )  # fmt: skip
        assert done.returncode == 2
        assert words in done.stderr or "no socket" in done.stderr
