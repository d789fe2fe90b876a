"""The controller as its own process, for tests that kill it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def write_config(folder: Path, port: int, text: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "controller.toml"
    path.write_text(f'listen = "127.0.0.1:{port}"\nstate_dir = "{folder / "state"}"\n{text}')
    return path


def toml(keys: dict[str, Any]) -> str:
    """Keys at the top of a configuration, as text."""
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())


@contextmanager
def running(config: Path) -> Iterator[subprocess.Popen[str]]:
    """A controller process, killed at the end of the block if it still lives."""
    command = [sys.executable, "-m", "controller", "--config", str(config)]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()
