"""What root may write for the helper, and that nobody else has."""

import pytest

from agent.roothelper.config import HelperConfig, read
from vocab.errors import ConfigError

ENGINE = '[replicas.engines.torch]\nprogram = ["/opt/corral/bin/python", "-P", "-m", "engine"]\n'


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "roothelper.toml"
    path.touch(mode=0o600)
    return path


def test_without_a_file_no_replica_is_started(tmp_path):
    assert read(tmp_path / "none") == HelperConfig()
    assert read(tmp_path / "none").replicas is None


def test_an_engine_is_its_program_and_what_an_order_may_choose(file):
    file.write_text(ENGINE + 'options = ["max_running"]\n')
    found = read(file).replicas
    assert found is not None
    assert found.engines["torch"].options == ("max_running",)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[replicas.engines.bash]\nprogram = ["/bin/bash"]', "no such engine"),
        ('[replicas.engines.vllm]\nprogram = ["vllm"]', "absolute path"),
        ("[replicas.engines.vllm]", "give program"),
        ('[replicas.engines.command]\nprogram = ["/bin/x"]', "give commands"),
        ('[replicas.engines.command]\ncommands = [["x"]]', "absolute path"),
        ("[replicas.engines.command]\ncommands = [[]]", "absolute path"),
        ("[replicas]\nmost = 0", "most"),
        ("[replicas]\nshell = true", "shell"),
    ],
)
def test_what_cannot_be_meant_stops_the_start(file, text, words):
    file.write_text(text + "\n")
    with pytest.raises(ConfigError, match=words):
        read(file)


def test_a_file_that_others_may_write_is_not_taken(file):
    file.write_text(ENGINE)
    file.chmod(0o660)
    with pytest.raises(ConfigError, match="chmod go-w"):
        read(file)
