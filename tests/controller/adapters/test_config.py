"""The tables of the configuration that give leave to ask managers."""

from pathlib import Path

import pytest

from controller.config import read
from vocab.errors import ConfigError

HEAD = 'state_dir = "/var/lib/corral/controller"\n'


def config(folder: Path, text: str) -> Path:
    path = folder / "controller.toml"
    path.write_text(HEAD + text)
    return path


def test_a_manager_without_its_table_is_not_asked(tmp_path: Path) -> None:
    assert read(config(tmp_path, "")).managing == ()


def test_each_table_names_what_its_manager_can(tmp_path: Path) -> None:
    text = '[slurm]\non_resume = "close_again"\n[kubernetes]\ncordon_nodes = true\n[hook]\ncommand = ["/bin/end"]\n'
    found = {each.by: each for each in read(config(tmp_path, text)).managing}
    assert {by: (each.nodes, each.ends, each.whole) for by, each in found.items()} == {
        "slurm": (True, False, True),
        "kubernetes": (True, True, False),
        "hook": (False, True, False),
    }
    assert [found["slurm"].resume_lifts, found["kubernetes"].resume_lifts] == [False, True]
    assert not any(each.ok for each in found.values())


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('[slurm]\non_resume = "never"\n', "on_resume"),
        ("[hook]\ncommand = []\n", "command"),
        ("[kubernetes]\ncordon = true\n", "cordon"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        read(config(tmp_path, text))
