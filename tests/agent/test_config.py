from pathlib import Path

import pytest

from agent.config import read
from vocab.errors import ConfigError
from vocab.states import Level

GOOD = 'node = "n1"\ncontroller = "http://127.0.0.1:7400"\nstate_dir = "/s"\nrun_dir = "/r"\n'


def written(tmp_path, text):
    path = tmp_path / "agent.toml"
    path.write_text(text)
    return path


def test_the_defaults_are_safe(tmp_path):
    config = read(written(tmp_path, GOOD))
    assert config.level is Level.OBSERVE
    assert config.listen == "127.0.0.1:7410"
    assert config.state_dir == Path("/s")
    assert config.virtual is None


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("colour = 1", "colour"),
        ("spool_limit_mb = 5", "spool_limit_mb"),
        ('spool_limit_bytes = "16M"', "spool_limit_bytes"),
        ("spool_limit_bytes = 5", "spool_limit_bytes"),
        ('level = "all"', "level"),
        ("replica_base_port = 99999", "replica_base_port"),
        ('listen = "here"', "listen"),
        ('tls_cert = "/c"', "tls_key"),
        ("node =", "TOML"),
        ('dcgm_exporter = "here"', "dcgm_exporter"),
        ('[[plugins]]\nname = "a b"\ncommand = ["/c"]', "plugins"),
        ('[[plugins]]\nname = "a"\ncommand = []', "command"),
        ('[[plugins]]\nname = "a"\ncommand = ["c"]', "absolute"),
        ('[[plugins]]\nname = "a"\ncommand = ["/c"]\nperiod_s = 5', "timeout_s"),
        ('[[plugins]]\nname = "a"\ncommand = ["/c"]\n[[plugins]]\nname = "a"\ncommand = ["/d"]', "two are called"),
    ],
)
def test_what_is_wrong_is_named_with_its_file(tmp_path, line, named):
    path = written(tmp_path, GOOD + line + "\n")
    with pytest.raises(ConfigError, match=named):
        read(path)


def test_units_of_systemd_are_for_real_nodes_and_start_what_root_says(tmp_path):
    assert read(written(tmp_path, GOOD)).replica_manager == "process"
    units = GOOD + 'replica_manager = "systemd"\n'
    assert read(written(tmp_path, units)).replica_group == "corral-engine"
    for line in ('virtual = "8xH100"', 'replica_program = ["/opt/engine"]', 'replica_manager = "docker"'):
        with pytest.raises(ConfigError, match="replica_manager"):
            read(written(tmp_path, (GOOD if "docker" in line else units) + line + "\n"))


def test_a_controller_without_a_scheme_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="http://"):
        read(written(tmp_path, GOOD.replace("http://", "")))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"nothing\.toml"):
        read(tmp_path / "nothing.toml")
