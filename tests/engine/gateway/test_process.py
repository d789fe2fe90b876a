import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ports import free_ports

ROOT = Path(__file__).resolve().parents[3]


async def started(config: Path) -> asyncio.subprocess.Process:
    words = (sys.executable, "-m", "engine.gateway", "--config", str(config))
    return await asyncio.create_subprocess_exec(*words, cwd=ROOT, stderr=subprocess.PIPE)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("lisen = '127.0.0.1:1'", "lisen"),
        ("listen = 'here'", "listen"),
        ("listen = '0.0.0.0:1'", "token_file"),
        ("controller = 'localhost:7400'", "controller"),
        ("hold_s = -1.0", "hold_s"),
        ("token_file = '/nonexistent'", "/nonexistent"),
        ("tls_cert = '/nonexistent'", "tls_key"),
        ("listen = 7", "listen"),
        ("= 7", "not valid TOML"),
        (None, "cannot read"),
    ],
)
async def test_a_wrong_configuration_is_one_line_and_exit_code_2(tmp_path: Path, text: str | None, named: str) -> None:
    config = tmp_path / "gateway.toml"
    if text is not None:
        config.write_text(f"state_dir = '{tmp_path}/state'\n{text}\n" if not text.startswith("=") else text)
    child = await started(config)
    _, said = await child.communicate()
    assert child.returncode == 2
    assert len(said.splitlines()) == 1
    assert said.startswith(b"corral-gateway: ")
    assert named.encode() in said


async def test_sigterm_is_a_clean_stop(tmp_path: Path) -> None:
    config = tmp_path / "gateway.toml"
    listen, controller = free_ports(2)
    config.write_text(
        f"listen = '127.0.0.1:{listen}'\ncontroller = 'http://127.0.0.1:{controller}'\nstate_dir = '{tmp_path}/state'\n"
    )
    child = await started(config)
    assert child.stderr is not None
    while b"gateway serves" not in await child.stderr.readline():
        pass
    child.send_signal(signal.SIGTERM)
    await child.stderr.read()
    assert await child.wait() == 0


def test_the_gateway_pulls_neither_torch_nor_sqlalchemy() -> None:
    script = "import sys, engine.gateway.__main__; print(sorted({'torch', 'sqlalchemy', 'numpy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
