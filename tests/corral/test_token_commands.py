"""``corral token`` and ``corral enroll`` against a real controller: a secret is shown once, to its owner alone."""

import asyncio
import time
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from corral.__main__ import cli
from tests.controller.house import House, batch, house
from vocab.clock import VirtualClock
from vocab.errors import ConfigError, CorralError


def secret_file(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o600)
    return path


async def corral(home: House, *words: object) -> Result:
    """What the command line did, run beside the controller."""
    environment = {"CORRAL_URL": home.base, "COLUMNS": "160"}
    return await asyncio.to_thread(
        CliRunner().invoke, cli, [str(word) for word in words], env=environment, standalone_mode=False
    )


async def test_days_of_tokens_are_told_in_utc_as_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "XYZ-9")
    time.tzset()
    try:
        async with house(tmp_path, clock=VirtualClock(1_796_000_000.0)) as home:
            await corral(home, "token", "create", "--role", "viewer", "--name", "ann")
            assert "2026-11-30 00:53" in (await corral(home, "token", "list")).output
    finally:
        monkeypatch.undo()
        time.tzset()


async def test_a_token_is_made_listed_and_revoked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    admin = secret_file(tmp_path / "admin", "s3cret")
    monkeypatch.setenv("CORRAL_TOKEN_FILE", str(admin))
    async with house(tmp_path / "state", token_file=str(admin)) as home:
        done = await corral(home, "token", "create", "--role", "viewer", "--name", "ann", "--ttl", "12h")
        secret = done.output.strip()
        assert secret.startswith("corral_")
        (token,) = await home.get("tokens")
        assert token["expires_at"] - token["made_at"] == 12 * 3600
        listed = (await corral(home, "token", "list")).output
        assert "ann" in listed
        assert token["id"] in listed
        assert secret not in listed
        done = await corral(home, "token", "revoke", token["id"], "--reason", "left")
        assert "counts no more" in done.output
        assert "revoked" in (await corral(home, "token", "list")).output


async def test_a_secret_goes_into_a_new_file_that_only_its_owner_reads(tmp_path: Path) -> None:
    async with house(tmp_path / "state") as home:
        out = tmp_path / "grafana.token"
        assert (await corral(home, "token", "create", "--role", "viewer", "--out", out)).exception is None
        assert out.stat().st_mode & 0o777 == 0o600
        assert out.read_text().startswith("corral_")
        again = await corral(home, "token", "create", "--role", "operator", "--out", out)
        assert isinstance(again.exception, ConfigError)
        assert len(await home.get("tokens")) == 1


async def test_a_node_trades_a_one_time_token_for_its_own(tmp_path: Path) -> None:
    admin = secret_file(tmp_path / "admin", "s3cret")
    async with house(tmp_path / "state", token_file=str(admin)) as home:
        once, own = tmp_path / "once", tmp_path / "node.token"
        made = await home.post("tokens", {"name": "once", "role": "enroll", "node": "n1"})
        secret_file(once, made["secret"])
        done = await corral(home, "enroll", "--node", "n1", "--token-file", once, "--out", own)
        assert done.exception is None, done.exception
        assert own.stat().st_mode & 0o777 == 0o600
        assert not once.exists()
        headers = {"Authorization": f"Bearer {own.read_text().strip()}", "Content-Type": "application/json"}
        body = msgspec.json.encode(batch())
        assert (await home.raw("POST", "/api/v1/agent/batch", headers=headers, data=body))[0] == 200


async def test_a_token_that_cannot_be_kept_is_not_traded(tmp_path: Path) -> None:
    async with house(tmp_path / "state") as home:
        made = await home.post("tokens", {"name": "once", "role": "enroll"})
        once = secret_file(tmp_path / "once", made["secret"])
        done = await corral(home, "enroll", "--node", "n1", "--token-file", once, "--out", "/nowhere/node.token")
        assert isinstance(done.exception, ConfigError)
        (token,) = await home.get("tokens")
        assert token["counts"]


@pytest.mark.parametrize("ttl", ["12", "0h", "soon", "1y"])
async def test_a_time_without_its_unit_is_refused(ttl: str) -> None:
    done = CliRunner().invoke(cli, ["token", "create", "--role", "viewer", "--ttl", ttl])
    assert (done.exit_code, "write for example 30m" in done.output) == (2, True)
    assert not isinstance(done.exception, CorralError)
