"""What a process pulls in when it starts: the agent stays small, torch stays with the engine."""

import subprocess
import sys

import pytest

SHOW = "import sys, {module}; print(*sorted({{name.split('.')[0] for name in sys.modules}}))"


def loaded(module: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", SHOW.format(module=module)], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("module", "banned"),
    [
        ("agent.__main__", {"torch", "numpy", "sqlalchemy", "alembic", "apscheduler", "jinja2"}),
        ("agent.sources.nvml_child", {"torch", "numpy", "sqlalchemy", "aiohttp", "prometheus_client"}),
        ("agent.sources.dcgm.child", {"torch", "numpy", "sqlalchemy", "aiohttp", "prometheus_client"}),
        ("controller.__main__", {"torch", "numpy", "pynvml"}),
        ("engine.gateway.__main__", {"torch", "numpy", "sqlalchemy", "pynvml"}),
        ("corral.__main__", {"torch", "numpy", "sqlalchemy", "aiohttp", "rich", "prometheus_client"}),
    ],
)
def test_a_process_starts_without_what_it_does_not_need(module: str, banned: set[str]) -> None:
    assert not loaded(module) & banned
