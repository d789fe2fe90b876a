"""``corral policy`` and ``corral incident``: against a real controller, and over recordings without any."""

import asyncio
import json
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace

from controller.deciding.mind import real_core
from corral.__main__ import cli
from tests.controller.house import House, batch, event, facts, house
from vocab.errors import ConfigError, InputError
from vocab.states import Level

QUIET = 'version = "quiet"\n[rules."xid:79"]\nshadow = true\n'


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words], standalone_mode=False, catch_exceptions=True)


async def say(home: House, *words: str | Path) -> str:
    """What a command prints that must succeed, asked of this controller."""
    found = await asyncio.to_thread(run, *words, "--url", home.base)
    assert found.exception is None, found.exception
    return found.output


def nobody() -> str:
    """An address at which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


@pytest.fixture
def quiet(tmp_path: Path) -> Path:
    path = tmp_path / "quiet.toml"
    path.write_text(QUIET)
    return path


def recording(folder: Path) -> Path:
    """A GPU falls off the bus."""
    node = {
        "at": 0, "obs": "node", "node": "n1", "boot_id": "b", "driver": "570.1",
        "gpus": [{"uuid": f"GPU-{index}", "index": index, "pci": f"0000:{index + 16:02x}:00"} for index in range(4)],
    }  # fmt: skip
    line = "NVRM: Xid (PCI:0000:10:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
    fault = {"at": 40, "obs": "kernel", "node": "n1", "source": "kmsg", "seq": 1, "kernel_s": 40.0, "line": line}
    lines = [node, fault, {"at": 90, "obs": "end"}]
    path = folder / "fault.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))
    return path


def test_check_tells_all_that_is_wrong_and_needs_no_controller(tmp_path: Path, quiet: Path) -> None:
    assert "version quiet, 1 rule and 0 pools differ" in run("policy", "check", quiet).output
    wrong = tmp_path / "wrong.toml"
    wrong.write_text('level = "most"\n[rules."gpu_lots"]\nshadow = true\n')
    error = run("policy", "check", wrong).exception
    assert isinstance(error, ConfigError)
    assert len(str(error).splitlines()) == 2
    assert isinstance(run("policy", "check", tmp_path / "none.toml").exception, InputError)


def test_a_recording_is_played_under_both_policies_and_what_differs_is_printed(tmp_path: Path, quiet: Path) -> None:
    found = run("policy", "test", recording(tmp_path), "--policy", quiet, "--url", nobody())
    assert found.return_value == 1
    assert "no controller answers: compared with the built-in policy" in found.output
    assert "builtin-1 -> quiet" in found.output
    assert "- " in found.output
    assert "hold       GPU-0: placed by policy" in found.output
    assert "hold       GPU-0: would_place by policy" in found.output
    same = run("policy", "test", recording(tmp_path), "--url", nobody())
    assert same.return_value == 0


def test_the_same_recording_gives_the_same_words(tmp_path: Path, quiet: Path) -> None:
    words = ("policy", "test", recording(tmp_path), "--policy", quiet, "--url", nobody())
    assert run(*words).output == run(*words).output


async def test_a_policy_is_adopted_and_gone_back_to(tmp_path: Path, quiet: Path) -> None:
    async with house(tmp_path / "state", make_core=real_core) as home:
        compared = await say(home, "policy", "diff", quiet)
        assert 'rules."xid:79": critical, reboot_node: holds  ->  critical, reboot_node: holds; in shadow' in compared
        assert "adoption 2: version quiet is in force" in await say(home, "policy", "adopt", quiet, "--reason", "calm")
        assert "the policies say the same" in await say(home, "policy", "diff")
        played = await say(home, "policy", "test", recording(tmp_path), "--policy", "/dev/null")
        assert "quiet -> builtin-1" in played
        assert "+ " in played
        back = await say(home, "policy", "revert", "--reason", "too calm")
        assert "adoption 3: version builtin-1 is in force again, as in adoption 1" in back
        told = (await say(home, "policy", "history")).splitlines()
        assert [line.split()[0] for line in told] == ["3", "2", "1"]
        assert "(back to 1)" in told[0]
        assert "level repair, adoption 3" in await say(home, "policy", "status")


async def test_an_incident_is_listed_told_and_closed(tmp_path: Path) -> None:
    async with house(tmp_path, make_core=real_core) as home:
        assert "No incident is open" in await say(home, "incident", "list")
        await home.post("agent/batch", batch(event(1), facts=replace(facts(), level=Level.REPAIR)))
        _, listed = (await say(home, "incident", "list")).splitlines()
        name = listed.split()[0]
        assert "xid:79" in listed
        told = await say(home, "incident", "show", name)
        assert "hold placed by policy" in told
        assert f"What to do: corral runbook CorralGpuFault, or {home.base}/runbooks/CorralGpuFault" in told
        closed = await say(home, "incident", "close", name, "--verdict", "right", "--reason", "a bad board")
        assert "closed; hold" in closed
        assert "noted that Corral was right" in closed
        assert "No incident is open" in await say(home, "incident", "list")
        assert name in await say(home, "incident", "list", "--all")
        assert "1 right and 0 wrong: 100% (between 21% and 100%)" in await say(home, "policy", "status")


@pytest.mark.parametrize("command", ["drain", "explain", "hold", "release"])
def test_help_says_how_a_gpu_is_named(command: str) -> None:
    told = " ".join(run(command, "--help").output.split())
    assert "NODE/INDEX" in told
    assert "a part of one that no other has" in told
