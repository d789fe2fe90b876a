"""The doctor at work, on this machine: with the C library in the place of a driver, and without any."""

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from agent.config import AgentConfig, Plugin
from agent.virtual.state import VirtualState
from corral.doctor.facts import Facts
from corral.doctor.files import read_files
from corral.doctor.finding import Finding, Verdict
from corral.doctor.look import look
from corral.doctor.table import show
from tests.fakes.nvml.fixture import nvml_library
from tests.ports import free_ports

__all__ = ["nvml_library"]
ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 60


@pytest.fixture
def state(tmp_path: Path) -> VirtualState:
    return VirtualState.create(tmp_path / "virtual.state", "n1")


def config(tmp_path: Path, library: Path | None = None) -> AgentConfig:
    return AgentConfig(
        node="n1", controller=f"http://127.0.0.1:{free_ports(1)[0]}", state_dir=tmp_path, run_dir=tmp_path,
        nvml_library=library or tmp_path / "none.so", dcgm="off",
    )  # fmt: skip


async def looked(tmp_path: Path, library: Path, state: VirtualState, within_s: float = 20.0) -> Facts:
    environment = {"CORRAL_FAKE_NVML_STATE": str(state.path)}
    return await look(config(tmp_path, library), Facts(), within_s=within_s, environment=environment)


async def test_a_driver_that_answers_is_seen_as_an_agent_would_see_it(tmp_path, nvml_library, state):
    facts = await looked(tmp_path, nvml_library, state)
    assert facts.nvml_error is None
    assert len(facts.gpus) == 8
    assert "sm_active_ratio" in facts.gpus[0].readings
    assert facts.state_writable
    assert facts.state_filesystem
    assert facts.controller_error


async def test_programs_of_the_configuration_are_looked_for(tmp_path):
    plugins = (Plugin(name="well", command=("/bin/true",)), Plugin(name="gone", command=(str(tmp_path / "x"),)))
    wanted = msgspec.structs.replace(config(tmp_path), plugins=plugins, diag_program=("no-such-program",))
    found = (await read_files(wanted))["programs"]
    assert [name for name, error in found.items() if error is None] == ["plug-in well"]
    assert "no-such-program: there is no such program" in found["diag_program"]


async def test_a_driver_that_hangs_is_not_waited_for(tmp_path, nvml_library, state):
    state.block.hang = 1
    facts = await looked(tmp_path, nvml_library, state, within_s=4.0)
    assert not facts.gpus or facts.nvml_error


async def test_a_machine_without_a_driver_has_nothing_to_read(tmp_path):
    facts = await look(config(tmp_path), Facts())
    assert (facts.nvml_error or "").startswith("LIBRARY_NOT_FOUND: ")
    assert facts.gpus == ()
    assert facts.user


def doctor(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "corral", "doctor", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S)


def test_the_command_prints_json_and_says_by_its_exit_code_that_something_is_missing(tmp_path):
    path = tmp_path / "agent.toml"
    lines = {"node": "n1", "controller": f"http://127.0.0.1:{free_ports(1)[0]}", "nvml_library": f"{tmp_path}/none.so"}
    lines |= dict.fromkeys(("state_dir", "run_dir"), str(tmp_path))
    path.write_text("".join(f'{key} = "{value}"\n' for key, value in lines.items()))
    done = doctor("--json", "--config", str(path))
    found = {f"{one['area']}/{one['what']}": one for one in json.loads(done.stdout)}
    assert done.returncode == 1, done.stderr
    assert found["agent/configuration"]["verdict"] == "ok"
    assert found["agent/level"]["found"].startswith("observe")
    assert any(where.startswith("controller/") for where in found)


def test_a_wrong_configuration_that_was_named_is_wrong_usage(tmp_path):
    path = tmp_path / "agent.toml"
    path.write_text("node = 1\n")
    done = doctor("--config", str(path))
    assert done.returncode == 2
    assert "agent.toml" in done.stderr


def test_the_table_names_what_to_do(capsys):
    found = (Finding("node", "clock", Verdict.MISSING, "nobody keeps it", "run chrony"),)
    show(found, Console(width=100))
    shown = capsys.readouterr().out
    assert "run chrony" in shown
    assert "1 of 1 need hands" in shown
