"""Plug-ins as real programs: little scripts that do well, badly, or not at all."""

import asyncio
import json
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.config import Plugin
from agent.judge import Judge
from agent.replicas.identity import arguments, pids
from agent.sources.plugin import PluginSource, decode
from tests.agent.sources.collector import running
from vocab.clock import SystemClock
from vocab.errors import SourceDown
from vocab.messages import ClearedItem, EventItem
from vocab.observations import Check, SourceState

DOCS = Path(__file__).resolve().parents[3] / "docs" / "plugins.md"
A = "GPU-aaaaaaaa-0000-4000-8000-000000000001"


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where nobody, too, may read and run what lies there: pytest's own folders are closed to him."""
    with tempfile.TemporaryDirectory() as path:
        Path(path).chmod(0o755)
        yield Path(path)


def plugin(
    folder: Path, script: str, *arguments: str, timeout_s: float = 60.0, interpreter: str = "/bin/sh"
) -> PluginSource:
    path = folder / "check"
    path.write_text(f"#!{interpreter}\n{script}\n")
    path.chmod(0o755)
    described = Plugin(name="mine", command=(str(path), *arguments), period_s=5.0, timeout_s=timeout_s)
    return PluginSource("n1", described, SystemClock(), spread_s=0.0)


async def outcome(source: PluginSource) -> tuple[Check, SourceState]:
    async with running(source) as found:
        return await found.find(Check), await found.find(SourceState)


async def test_what_it_prints_is_told(folder):
    said = {"result": "problem", "gpu": A, "text": "too slow", "readings": {"rate": 2.5}, "new": 1}
    check, state = await outcome(plugin(folder, f"echo '{json.dumps(said)}'"))
    assert (check.node, check.check, check.gpu) == ("n1", "plugin:mine", A)
    assert (check.result, check.text, check.readings) == ("problem", "too slow", {"rate": 2.5})
    assert (state.source, state.state) == ("plugin:mine", "up")


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("true", "OUTPUT"),
        ("echo ok", "OUTPUT"),
        ("""echo '{"result": "bad"}'""", "OUTPUT"),
        ("""echo '{"result": "problem", "code": 7}'""", "OUTPUT"),
        ("""echo '[{"result": "problem"}]'""", "OUTPUT"),
        ("""echo '{"result": "pass"}{"result": "pass"}'""", "OUTPUT"),
        ("head -c 100000 /dev/zero", "OUTPUT"),
        ("""echo '{"result": "problem"}'; echo it broke >&2; exit 3""", "EXIT"),
        ("""echo '{"result": "problem"}'; kill -9 $$""", "EXIT"),
    ],
)
async def test_whatever_is_wrong_with_it_is_unknown_and_never_a_problem(folder, script, reason):
    check, state = await outcome(plugin(folder, script))
    assert (check.result, check.code) == ("unknown", None)
    assert (check.text or "").startswith(f"{reason}: ")
    assert (state.state, state.error) == ("down", check.text)


async def test_a_program_that_is_not_there_is_unknown(folder):
    source = plugin(folder, "true")
    (folder / "check").unlink()
    check, _ = await outcome(source)
    assert (check.text or "").startswith("NOT_STARTED: ")


async def test_its_words_on_standard_error_are_the_reason(folder):
    check, _ = await outcome(plugin(folder, "echo no such disk >&2; exit 2"))
    assert check.text == "EXIT: it ended with 2: no such disk"


async def test_one_that_takes_too_long_is_killed_with_all_that_it_started(folder):
    mark = str(folder / "child")
    script = f"sh -c 'sleep 300; : {mark}' &\nsleep 300"
    check, _ = await outcome(plugin(folder, script, timeout_s=0.5))
    assert (check.result, (check.text or "").partition(":")[0]) == ("unknown", "TIMEOUT")
    assert await gone(mark)


@pytest.mark.parametrize("output", ["", ">/dev/null 2>&1"], ids=["with its output open", "without its output"])
async def test_what_it_leaves_behind_is_ended(folder, output):
    mark = str(folder / "child")
    script = f"""sh -c 'sleep 300; : {mark}' {output} &\necho '{{"result": "pass"}}'"""
    check, _ = await outcome(plugin(folder, script))
    assert check.result == "pass"
    assert await gone(mark)


@pytest.mark.parametrize("last", ["sleep 300", """echo '{"result": "pass"}'"""], ids=["too long", "in time"])
async def test_a_child_in_a_session_of_its_own_does_not_escape(folder, last):
    mark = str(folder / "child")
    script = f"setsid sh -c 'setsid sleep 300 {mark} & sleep 300; : {mark}' &\n{last}"
    check, _ = await outcome(plugin(folder, script, timeout_s=2.0))
    assert check.result == ("unknown" if last == "sleep 300" else "pass")
    assert await gone(mark)


async def test_an_agent_that_stops_ends_what_runs(folder):
    mark = str(folder / "check")
    async with running(plugin(folder, "sleep 300\ntrue")):
        async with asyncio.timeout(60):
            while not runs(mark):
                await asyncio.sleep(0.01)
    assert await gone(mark)


def runs(mark: str) -> bool:
    """Whether a process names this mark."""
    return any(mark in word for pid in pids() for word in arguments(pid))


async def gone(mark: str) -> bool:
    """Whether none does any more; a killed one is there until somebody has waited for it."""
    async with asyncio.timeout(60):
        while runs(mark):
            await asyncio.sleep(0.01)
    return True


async def test_its_environment_is_clean_and_nothing_is_a_shells(folder, monkeypatch):
    monkeypatch.setenv("CORRAL_SECRET", "do not tell")
    said = """printf '{"result": "pass", "text": "%s"}' "$1 $(env | cut -d= -f1 | tr '\\n' ' ')" """
    check, _ = await outcome(plugin(folder, said, "$HOME;"))
    first, *names = (check.text or "").split()
    assert first == "$HOME;"
    assert set(names) - {"PWD", "_", "SHLVL", "OLDPWD"} == {"PATH", "LC_ALL", "HOME", "CORRAL_RUN"}, (
        "a shell adds some of its own"
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has rights to give up")
async def test_under_root_it_runs_as_nobody(folder):
    check, _ = await outcome(
        plugin(folder, """echo "{\\"result\\": \\"pass\\", \\"text\\": \\"$(id -un) $(id -G)\\"}\"""")
    )
    assert re.fullmatch(r"nobody \d+", check.text or "")


def test_too_many_readings_are_not_taken():
    with pytest.raises(SourceDown):
        decode(b'{"result": "pass", "readings": {' + b",".join(b'"r%d": 1' % n for n in range(65)) + b"}}")


async def test_the_plug_in_of_the_docs_works(folder):
    script = re.findall(r"```python\n#!/usr/bin/env python3\n(.*?)```", DOCS.read_text(), re.DOTALL)[0]
    source = plugin(folder, script, "/", interpreter="/usr/bin/env python3")
    check, state = await outcome(source)
    assert state.state == "up"
    assert check.result in {"pass", "problem"}
    assert check.readings
    assert check.readings["free_bytes"] > 0


def test_a_pass_without_a_gpu_takes_back_all_that_the_plug_in_has_reported():
    judge = Judge("n1", "b")
    told = Check(at=1.0, node="n1", check="plugin:mine", gpu=A, result="problem", text="slow")
    opened = judge.observe(told, 1.0)
    assert [item.event.code for item in opened if isinstance(item, EventItem)] == ["check_failed"]
    assert not judge.observe(Check(at=2.0, node="n1", check="plugin:other", result="pass"), 2.0)
    cleared = judge.observe(Check(at=3.0, node="n1", check="plugin:mine", result="pass"), 3.0)
    assert [item.cleared.gpu for item in cleared if isinstance(item, ClearedItem)] == [A]
