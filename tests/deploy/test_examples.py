"""The example configurations, read as the processes read them."""

from pathlib import Path

import msgspec
import pytest

import agent.config
import agent.roothelper.config
import controller.config
import engine.gateway.config
from vocab.states import Level
from wire.config import load

EXAMPLES = Path(__file__).parents[2] / "deploy" / "examples"


def test_the_controllers_example_keeps_one_deployment_running():
    config = controller.config.read(EXAMPLES / "controller.toml")
    [deployment] = config.deployments
    assert (deployment.name, deployment.replicas, deployment.floor) == ("chat", 2, 1)
    assert config.loopback


def test_the_agents_example_only_observes_and_lives_in_the_units_folders():
    config = agent.config.read(EXAMPLES / "agent.toml")
    assert config.level is Level.OBSERVE
    assert config.virtual is None
    assert (str(config.state_dir), str(config.run_dir)) == ("/var/lib/corral/agent", "/run/corral")


def test_the_gateways_example_asks_the_controller_of_the_example():
    config = load(EXAMPLES / "gateway.toml", engine.gateway.config.GatewayConfig)
    assert config.controller == f"http://{controller.config.read(EXAMPLES / 'controller.toml').listen}"


def test_the_root_helpers_example_says_what_holds_without_it_and_allows_the_engine_of_this_installation(tmp_path):
    written = tmp_path / "roothelper.toml"
    written.write_bytes((EXAMPLES / "roothelper.toml").read_bytes())
    written.chmod(0o600)
    config = agent.roothelper.config.read(written)
    assert msgspec.structs.replace(config, replicas=None) == agent.roothelper.config.HelperConfig()
    assert config.replicas is not None
    engine = config.replicas.engines["torch"]
    assert msgspec.structs.replace(config.replicas, engines={}) == agent.roothelper.config.ReplicaConfig()
    assert engine.program == ("/opt/corral/bin/python", "-P", "-m", "engine")
    assert agent.config.read(EXAMPLES / "agent.toml").replica_manager == "systemd"
    assert agent.config.read(EXAMPLES / "agent.toml").run_dir == config.replicas.run_dir
    assert config.pause_file == agent.config.read(EXAMPLES / "agent.toml").pause_file


@pytest.mark.parametrize("name", ["agent", "controller", "gateway"])
def test_the_units_start_what_the_examples_configure(name):
    unit = (EXAMPLES.parent / "systemd" / f"corral-{name}.service").read_text()
    assert f"--config /etc/corral/{name}.toml" in unit
    assert f"StateDirectory=corral/{name}\n" in unit
    assert f'state_dir = "/var/lib/corral/{name}"' in (EXAMPLES / f"{name}.toml").read_text()
