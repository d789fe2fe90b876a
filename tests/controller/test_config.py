"""A wrong configuration is one line that names file, key and rule."""

from pathlib import Path

import pytest

from controller.config import Config, read
from vocab.errors import ConfigError

GOOD = """
state_dir = "/var/lib/corral/controller"
[[deployments]]
name = "chat"
replicas = 2
min_ready = 1
model = "smollm2"
"""


def load(tmp_path: Path, text: str) -> Config:
    path = tmp_path / "controller.toml"
    path.write_text(text)
    return read(path)


def test_all_that_is_wrong_is_told_at_once_each_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "controller.toml"
    path.write_text(
        'state_dri = "/x"\nlisten = 5\nkeep_days = -1\n[pools.test]\nnodes = []\nlevel = "most"\n'
        '[[deployments]]\nname = "a"\nmodel = "m"\nreplicas = "x"\n[[deployments]]\nnmae = "b"\n[slurm]\nreaso = 1\n'
    )
    with pytest.raises(ConfigError) as caught:
        read(path)
    told = [line.removeprefix(f"{path}: ") for line in str(caught.value).splitlines()]
    assert told == [
        "Expected `str`, got `int` - at `$.listen`",
        "Expected `float` > 0.0 - at `$.keep_days`",
        "Expected `array` of length >= 1 - at `$.pools.test.nodes`",
        "Invalid enum value 'most' - at `$.pools.test.level`",
        "Expected `int`, got `str` - at `$.deployments[0].replicas`",
        "Object contains unknown field `nmae` - at `$.deployments[1]`",
        "Object missing required field `name` - at `$.deployments[1]`",
        "Object missing required field `model` - at `$.deployments[1]`",
        "Object contains unknown field `reaso` - at `$.slurm`",
        "Object contains unknown field `state_dri`",
        "Object missing required field `state_dir`",
    ]


def test_defaults_are_loopback_and_no_secrets(tmp_path: Path) -> None:
    config = load(tmp_path, GOOD)
    assert (config.listen, config.token_file, config.loopback) == ("127.0.0.1:7400", None, True)
    assert config.deployments[0].drain_s == 120.0


def test_floor_is_one_ready_replica_unless_there_are_none(tmp_path: Path) -> None:
    assert load(tmp_path, GOOD.replace("min_ready = 1\n", "")).deployments[0].floor == 1
    none = GOOD.replace("min_ready = 1\n", "").replace("replicas = 2", "replicas = 0")
    assert load(tmp_path, none).deployments[0].floor == 0


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("min_ready = 1", "min_ready = 3", "min_ready = 3 is more than replicas = 2 of deployment 'chat'"),
        ("replicas = 2", "replicas = -1", "$.deployments[0].replicas"),
        ("replicas = 2", 'replicas = "two"', "Expected `int`, got `str`"),
        ("replicas = 2", "gpus_per_replica = 0", "$.deployments[0].gpus_per_replica"),
        ("replicas = 2", "gpus_per_replica = 9", "with at most 8 on each"),
        ("replicas = 2", "gpus_per_replica = 3\nnodes_per_replica = 2", "it must be a multiple of 2"),
        ("replicas = 2", "gpus_per_replica = 16\nnodes_per_replica = 2", "for the engines vllm, sglang and command"),
        ("replicas = 2", "drain_ms = 3", "unknown field `drain_ms`"),
        ("replicas = 2", "drain_s = -1", "$.deployments[0].drain_s"),
        ("replicas = 2", 'engine = "abacus"', "must be one of torch"),
        ("replicas = 2", 'engine = "command"', "options.command of deployment 'chat' is missing"),
        ("replicas = 2", 'managed_by = "nobody"', "must be one of corral, systemd-unit"),
        ('model = "smollm2"', "", "missing required field `model`"),
        ('model = "smollm2"', 'model = ""', "model of deployment 'chat' is empty"),
        ('name = "chat"', 'name = "a b"', "$.deployments[0].name"),
        ('state_dir = "/var', 'state_dir = "var', "is not an absolute path"),
        ("[[deployments]]", 'listen = "7400"\n[[deployments]]', "'7400' is not host:port"),
        ("[[deployments]]", 'lissen = "x"\n[[deployments]]', "unknown field `lissen`"),
        ("[[deployments]]", 'tls_cert = "/c"\n[[deployments]]', "tls_cert and tls_key belong together"),
        ("[[deployments]]", "keep_days = 0\n[[deployments]]", "$.keep_days"),
        ("[[deployments]]", 'gateways = ["here"]\n[[deployments]]', "gateways: 'here' is not host:port"),
        ("[[deployments]]", "[[deployments", "not valid TOML"),
        (
            "[[deployments]]",
            'policy_file = "p.toml"\n[[deployments]]',
            "policy_file = 'p.toml' is not an absolute path",
        ),
        ("[[deployments]]", "[pools.a]\nnodes = []\n[[deployments]]", "$.pools.a.nodes"),
        (
            "[[deployments]]",
            '[pools.a]\nnodes = ["n1"]\nlevel = "all"\n[[deployments]]',
            "'all' - at `$.pools.a.level",
        ),
        ("[[deployments]]", '[pools.a]\nnodes = ["n1"]\nnode = 1\n[[deployments]]', "unknown field `node`"),
        ("[[deployments]]", '[pools.a]\nnodes = ["n1", "n1"]\n[[deployments]]', "pools.a.nodes: 'n1' is named twice"),
        (
            "[[deployments]]",
            '[pools.a]\nnodes = ["n1"]\n[pools.b]\nnodes = ["n1"]\n[[deployments]]',
            "pools.b.nodes: 'n1' is in pool 'a' already",
        ),
        ("[[deployments]]", '[domains]\nrack = ["n1", "n1"]\n[[deployments]]', "domains.rack: 'n1' is named twice"),
    ],
)
def test_wrong_value_is_named_with_its_rule(tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        load(tmp_path, GOOD.replace(old, new, 1))
    assert said in str(error.value)
    assert str(tmp_path / "controller.toml") in str(error.value)
    assert "\n" not in str(error.value)


def test_deployment_that_stands_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'chat' is used twice"):
        load(tmp_path, GOOD + GOOD.partition("\n[[")[2].join(("[[", "")))


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read the configuration"):
        read(tmp_path / "none.toml")


@pytest.mark.parametrize("dsn", ["//u:word@db/c", "//u@db/c?password=word", "//u@db/c?sslpassword=word"])
def test_password_in_the_address_of_the_database_is_refused_and_not_shown(tmp_path: Path, dsn: str) -> None:
    with pytest.raises(ConfigError, match="password does not belong") as caught:
        load(tmp_path, f'database = "postgresql:{dsn}"\n{GOOD}')
    assert "word@" not in str(caught.value)
    assert "=word" not in str(caught.value)
