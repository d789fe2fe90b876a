"""The keys of DCGM, and what the agent runs for them."""

from pathlib import Path

import pytest

from agent.config import AgentConfig, read
from agent.driver import dcgm_source, exporter_source, nvml_source
from vocab.clock import VirtualClock
from vocab.errors import ConfigError
from vocab.observations import AnyObservation, NodeSeen

CONFIG = """
node = "n1"
controller = "http://127.0.0.1:7400"
state_dir = "state"
run_dir = "run"
"""


def config_with(folder: Path, line: str) -> AgentConfig:
    path = folder / "agent.toml"
    path.write_text(CONFIG + line)
    return read(path)


@pytest.mark.parametrize(
    "engine", ["auto", "embedded", "localhost:5555", "10.0.0.7:5555", "[::1]:5555", "unix:///run/dcgm.socket"]
)
def test_an_engine_is_named_by_its_address(tmp_path: Path, engine: str) -> None:
    config = config_with(tmp_path, f'dcgm = "{engine}"')
    source = dcgm_source(config, VirtualClock())
    assert source is not None
    assert nvml_source(config, VirtualClock(), source).name == "nvml"


def test_dcgm_can_be_switched_off(tmp_path: Path) -> None:
    config = config_with(tmp_path, 'dcgm = "off"')
    assert dcgm_source(config, VirtualClock()) is None
    assert nvml_source(config, VirtualClock(), None).name == "nvml"


def test_an_exporter_is_read_where_one_is_named(tmp_path: Path) -> None:
    assert exporter_source(config_with(tmp_path, ""), VirtualClock()) is None
    config = config_with(tmp_path, 'dcgm_exporter = "http://127.0.0.1:9400/metrics"')
    source = exporter_source(config, VirtualClock())
    assert source is not None
    assert nvml_source(config, VirtualClock(), None, source).name == "nvml"


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ('dcgm = "on"', "dcgm"),
        ('dcgm = "localhost"', "dcgm"),
        ('dcgm = "unix:run/dcgm.socket"', "dcgm"),
        ('dcgm_profiling = "yes"', "dcgm_profiling"),
    ],
)
def test_a_wrong_key_is_named(tmp_path: Path, line: str, key: str) -> None:
    with pytest.raises(ConfigError, match=key):
        config_with(tmp_path, line)


@pytest.mark.parametrize("early", [True, False])
def test_the_inventory_says_whether_the_start_of_the_node_is_not_over(tmp_path: Path, *, early: bool) -> None:
    heard: list[AnyObservation] = []
    source = nvml_source(config_with(tmp_path, ""), VirtualClock(), None, booting=lambda: early)
    source._emit = heard.append  # without a child: only what it tells counts here
    source.ended("LIBRARY_NOT_FOUND")
    assert [one.booting for one in heard if isinstance(one, NodeSeen)] == [early]
