"""``corral restore`` refuses before it asks, so that nobody agrees to what cannot be done."""

from pathlib import Path

from click.testing import CliRunner

from controller.lock import only_controller
from corral.__main__ import cli
from vocab.errors import CorralError, InputError


def test_what_is_no_backup_is_refused_without_a_question(tmp_path: Path) -> None:
    config, backup, state = tmp_path / "controller.toml", tmp_path / "b.gz", tmp_path / "state"
    state.mkdir()
    config.write_text(f'state_dir = "{state}"\n')
    backup.write_bytes(b"holiday photos")
    words = ["restore", str(backup), "--config", str(config)]
    result = CliRunner().invoke(cli, words, input="y\n", standalone_mode=False)
    assert isinstance(result.exception, InputError)
    assert "is not a whole backup" in str(result.exception)
    assert "Go on?" not in result.output


def test_under_a_running_controller_a_restore_is_refused_without_a_question(tmp_path: Path) -> None:
    config, backup, state = tmp_path / "controller.toml", tmp_path / "b.gz", tmp_path / "state"
    state.mkdir()
    config.write_text(f'state_dir = "{state}"\n')
    backup.write_bytes(b"")
    with only_controller(state):
        result = CliRunner().invoke(
            cli, ["restore", str(backup), "--config", str(config)], input="y\n", standalone_mode=False
        )
    assert isinstance(result.exception, CorralError)
    assert "is in use by another controller" in str(result.exception)
    assert "Go on?" not in result.output
