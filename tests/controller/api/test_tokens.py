"""Tokens: shown once, bound to what they are for, ended at once; who did it is written down, the secret never."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.controller.house import NODE, House, batch, facts, house, uuid
from vocab.clock import VirtualClock
from vocab.errors import InputError, Refused
from wire.client import Client

NOW = 1_796_000_000.0
HOUR_S = 3600.0


def master(folder: Path) -> str:
    path = folder / "token"
    path.write_text("s3cret\n")
    path.chmod(0o600)
    return str(path)


@asynccontextmanager
async def guarded(folder: Path, **more: Any) -> AsyncIterator[House]:
    async with house(folder / "state", token_file=master(folder), **more) as home:
        yield home


async def make(home: House, role: str, name: str = "test", **more: Any) -> str:
    made = await home.post("tokens", {"name": name, "role": role, **more})
    return str(made["secret"])


async def status(home: House, secret: str, method: str, path: str, body: Any = None) -> int:
    headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
    return (await home.raw(method, f"/api/v1/{path}", headers=headers, json=body))[0]


async def ask(home: House, secret: str, method: str, path: str, body: Any = None) -> Any:
    async with Client(home.base, token=secret) as client:
        return await client.call(method, f"/api/v1/{path}", Any, body)


REASON = {"reason": "test"}
HOLD = {"subject": {"gpu": uuid(0)}, "reason": "test"}
ROWS = [  # what each role gets: 200 or 201 where it may
    ("GET", "fleet", None, {"viewer", "operator", "admin"}),
    ("GET", "replicas", None, {"viewer", "operator", "admin", "node", "gateway"}),
    ("POST", "pause", REASON, {"operator", "admin"}),
    ("POST", "holds", HOLD, {"operator", "admin"}),
    ("POST", "policy/adoptions", REASON, {"admin"}),
    ("POST", "policy/reverts", REASON, {"admin"}),
    ("GET", "tokens", None, {"admin"}),
    ("GET", f"agent/desired?node={NODE}&wait_s=0", None, {"node", "admin"}),
    ("POST", "gateway/reach", {"by": NODE, "nodes": {}}, {"node", "gateway", "admin"}),
]


async def test_each_role_gets_what_it_is_for_and_nothing_else(tmp_path: Path) -> None:
    roles = ("viewer", "operator", "admin", "node", "gateway", "enroll")
    async with guarded(tmp_path) as home:
        await home.post("agent/batch", batch())
        for role in roles:
            bound = {"node": NODE} if role == "node" else {}
            secret = await make(home, role, role, **bound)
            for method, path, body, may in ROWS:
                answered = await status(home, secret, method, path, body)
                assert (answered in {200, 201}) == (role in may), (role, method, path, answered)
                assert answered in {200, 201, 403}


async def test_a_route_that_names_no_roles_is_for_admins(tmp_path: Path) -> None:
    async with guarded(tmp_path) as home:
        viewer = {"Authorization": f"Bearer {await make(home, 'viewer')}"}
        for path, status in (("/metrics", 200), ("/openapi.json", 200), ("/sd/agents", 200), ("/nothing", 404)):
            assert (await home.raw("GET", path, headers=viewer))[0] == status
            assert (await home.raw("GET", path, headers={"Authorization": ""}))[0] == 401


async def test_a_secret_is_shown_once_and_lies_nowhere(tmp_path: Path) -> None:
    async with guarded(tmp_path) as home:
        made = await home.post("tokens", {"name": "grafana", "role": "viewer", "reason": "boards"})
        secret = made["secret"].rpartition("_")[2]
        for path in ("tokens", "audit"):
            _, text, _ = await home.raw("GET", f"/api/v1/{path}")
            assert secret not in text
            assert "grafana" in text
        await home.get("fleet")
    files = [path.read_bytes() for path in (tmp_path / "state").iterdir()]
    assert not [raw for raw in files if secret.encode() in raw]


async def test_a_token_counts_after_a_restart_until_it_is_revoked(tmp_path: Path) -> None:
    async with guarded(tmp_path) as home:
        secret = await make(home, "viewer")
    async with guarded(tmp_path) as home:
        assert await status(home, secret, "GET", "fleet") == 200
        (token,) = await home.get("tokens")
        await home.call("DELETE", f"/api/v1/tokens/{token['id']}", Any, {"reason": "left"})
        assert await status(home, secret, "GET", "fleet") == 401
        (token,) = await home.get("tokens")
        assert (token["counts"], token["revoked_at"] is None) == (False, False)
        assert [each["act"] for each in await home.get("audit")] == ["token_create", "token_revoke"]
        assert await make(home, "viewer")  # the name is free again


async def test_a_token_that_another_controller_revoked_ends_here(tmp_path: Path) -> None:
    from controller.door.tokens import Tokens

    async with guarded(tmp_path) as home:
        secret = await make(home, "viewer")
        other = Tokens(home.inside.store, VirtualClock(NOW))
        await other.load()
        await other.revoke(other.all()[0], by="another", reason="test")
        assert await status(home, secret, "GET", "fleet") == 200
        await home.inside.tokens.load()
        assert await status(home, secret, "GET", "fleet") == 401


async def test_a_revocation_by_a_controller_whose_clock_is_behind_is_seen(tmp_path: Path) -> None:
    from controller.door.tokens import Tokens

    async with guarded(tmp_path) as home:
        secret = await make(home, "viewer", "first")
        await make(home, "viewer", "second")
        await home.inside.tokens.load()
        other = Tokens(home.inside.store, VirtualClock(1.0))
        await other.load()
        (first,) = [token for token in other.all() if token.name == "first"]
        await other.revoke(first, by="another", reason="test")
        await home.inside.tokens.load()
        assert await status(home, secret, "GET", "fleet") == 401


async def test_a_token_ends_by_itself(tmp_path: Path) -> None:
    clock = VirtualClock(NOW)
    async with guarded(tmp_path, clock=clock) as home:
        secret = await make(home, "viewer", ttl_s=HOUR_S)
        assert await status(home, secret, "GET", "fleet") == 200
        clock.advance(HOUR_S)
        assert await status(home, secret, "GET", "fleet") == 401


async def test_who_ordered_is_written_down_by_the_name_of_the_token(tmp_path: Path) -> None:
    async with guarded(tmp_path) as home:
        await ask(home, await make(home, "operator", "ann"), "POST", "pause", REASON)
        await home.post("resume", REASON)
        actors = [each["actor"] for each in await home.get("audit")]
        assert actors == ["token_file at 127.0.0.1", "ann at 127.0.0.1", "token_file at 127.0.0.1"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "agent/batch", batch(node="n2", facts=facts("n2"))),
        ("GET", "agent/desired?node=n2&wait_s=0", None),
        ("POST", "gateway/reach", {"by": "n2", "nodes": {NODE: False}}),
    ],
)
async def test_a_node_speaks_for_itself_alone(tmp_path: Path, method: str, path: str, body: Any) -> None:
    async with guarded(tmp_path) as home:
        secret = await make(home, "node", node=NODE)
        await ask(home, secret, "POST", "agent/batch", batch())
        with pytest.raises(Refused, match="is node 'n1' and speaks for no other, such as 'n2'"):
            await ask(home, secret, method, path, body)
        assert [each["node"] for each in await home.get("nodes")] == [NODE]


async def test_a_gateway_that_is_bound_to_no_machine_is_one_witness_whatever_it_says(tmp_path: Path) -> None:
    from controller.api.agents import _witness
    from controller.door.access import Caller
    from vocab.roles import Role

    loose = Caller(name="edge", role=Role.GATEWAY)
    bound = Caller(name="edge", role=Role.GATEWAY, node="n1")
    assert {_witness(loose, by, {"n1"}) for by in ("n1", "n2", "other")} == {"gateway:edge"}
    assert _witness(bound, "n1", {"n1"}) == "n1"
    assert _witness(bound, "n1", {"n2"}) == "gateway:n1"


@pytest.mark.parametrize(
    ("body", "error", "said"),
    [
        ({"name": "x", "role": "node"}, InputError, "`node` is missing"),
        ({"name": "x", "role": "viewer", "node": "n1"}, InputError, "not bound to a node"),
        ({"name": "x", "role": "root"}, InputError, "role"),
        ({"name": "x y", "role": "viewer"}, InputError, "name"),
        ({"name": "x", "role": "viewer", "ttl_s": 0}, InputError, "ttl_s"),
        ({"name": "x", "role": "enroll", "ttl_s": 700_000}, InputError, "a week at most"),
        ({"name": "taken", "role": "viewer"}, Refused, "a token named 'taken' counts already"),
    ],
)
async def test_a_wrong_token_is_not_made(
    tmp_path: Path, body: dict[str, Any], error: type[Exception], said: str
) -> None:
    async with guarded(tmp_path) as home:
        await make(home, "viewer", "taken")
        with pytest.raises(error, match=said):
            await home.post("tokens", body)
        assert len(await home.get("tokens")) == 1


async def test_a_one_time_token_is_traded_once(tmp_path: Path) -> None:
    async with guarded(tmp_path) as home:
        once = await make(home, "enroll")
        answers = await asyncio.gather(
            *(ask(home, once, "POST", "enroll", {"node": node}) for node in ("n1", "n2")), return_exceptions=True
        )
        (made,) = [each for each in answers if isinstance(each, dict)]
        (failed,) = [each for each in answers if not isinstance(each, dict)]
        assert "traded already" in str(failed)
        node = made["token"]["node"]
        await ask(home, made["secret"], "POST", "agent/batch", batch(node=node, facts=facts(node)))
        assert await status(home, once, "POST", "enroll", {"node": "n3"}) == 401
        acts = [(each["act"], each["actor"], each["subject"]) for each in await home.get("audit", act="enroll")]
        assert acts == [("enroll", "test", f"node:{node}")]


async def test_a_one_time_token_waits_an_hour(tmp_path: Path) -> None:
    clock = VirtualClock(NOW)
    async with guarded(tmp_path, clock=clock) as home:
        once = await make(home, "enroll")
        clock.advance(HOUR_S)
        assert await status(home, once, "POST", "enroll", {"node": "n1"}) == 401


async def test_a_node_that_is_enrolled_is_not_replaced_by_anybody(tmp_path: Path) -> None:
    async with guarded(tmp_path) as home:
        first = (await ask(home, await make(home, "enroll", "a"), "POST", "enroll", {"node": "n1"}))["secret"]
        with pytest.raises(Refused, match="has a token already"):
            await ask(home, await make(home, "enroll", "b"), "POST", "enroll", {"node": "n1"})
        with pytest.raises(Refused, match="is for node 'n1' and not for 'n2'"):
            await ask(home, await make(home, "enroll", "c", node="n1"), "POST", "enroll", {"node": "n2"})
        assert await status(home, first, "POST", "agent/batch", None) == 400
        second = (await ask(home, await make(home, "enroll", "d", node="n1"), "POST", "enroll", {"node": "n1"}))[
            "secret"
        ]
        assert await status(home, first, "POST", "agent/batch", None) == 401
        assert await status(home, second, "POST", "agent/batch", None) == 400


async def test_on_loopback_without_a_token_nobody_is_asked_and_a_token_that_is_shown_binds(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        secret = await make(home, "node", node="n1")
        assert await status(home, "anything", "GET", "fleet") == 200
        assert await status(home, secret, "GET", "fleet") == 403
