"""Certificates: shown, checked both ways, and renewed without a restart; over real sockets."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.wire.pki import Authority
from vocab.errors import ConfigError, Unreachable
from vocab.metrics import GATEWAY
from wire.client import Client
from wire.exposition import Exposition
from wire.server import listen, make_app, reply
from wire.tls import Contexts, Tls, names

TOKEN = "a-token"


async def who(request: web.Request) -> web.Response:
    assert request.transport is not None
    return reply(sorted(names(request.transport.get_extra_info("peercert"))))


@asynccontextmanager
async def serving(contexts: Contexts) -> AsyncIterator[str]:
    app = make_app(ready=lambda: (True, ""), metrics=Exposition(GATEWAY))
    app.router.add_get("/who", who)
    runner = await listen(app, "127.0.0.1:0", tls=contexts.server)
    try:
        yield f"https://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def ask(url: str, tls: Tls) -> Any:
    async with Client(url, tls=Contexts(tls).client) as client:
        return await client.call("GET", "/who", Any)


async def test_the_other_side_is_believed_by_its_authority_alone(tmp_path: Path) -> None:
    ours, other = Authority(tmp_path / "ours"), Authority(tmp_path / "other", "another authority")
    cert, key = ours.give("controller")
    async with serving(Contexts(Tls(cert=cert, key=key))) as url:
        assert await ask(url, Tls(ca=ours.cert)) == []
        for tls in (Tls(), Tls(ca=other.cert)):
            with pytest.raises(Unreachable, match="certificate"):
                await ask(url, tls)


async def test_a_caller_without_a_certificate_is_not_let_in(tmp_path: Path) -> None:
    ours, other = Authority(tmp_path / "ours"), Authority(tmp_path / "other", "another authority")
    cert, key = ours.give("controller")
    mine, wrong = ours.give("node-1"), other.give("node-1")
    async with serving(Contexts(Tls(cert=cert, key=key, client_ca=ours.cert))) as url:
        assert await ask(url, Tls(ca=ours.cert, cert=mine[0], key=mine[1])) == ["localhost", "node-1"]
        for tls in (Tls(ca=ours.cert), Tls(ca=ours.cert, cert=wrong[0], key=wrong[1])):
            with pytest.raises(Unreachable):
                await ask(url, tls)


async def test_a_certificate_that_is_not_asked_for_may_be_missing(tmp_path: Path) -> None:
    ours = Authority(tmp_path)
    cert, key = ours.give("controller")
    tls = Tls(cert=cert, key=key, client_ca=ours.cert, client_required=False)
    async with serving(Contexts(tls)) as url:
        assert await ask(url, Tls(ca=ours.cert)) == []


async def test_a_renewed_certificate_is_shown_without_a_restart(tmp_path: Path) -> None:
    ours, other = Authority(tmp_path / "ours"), Authority(tmp_path / "other", "another authority")
    cert, key = ours.give("controller")
    fresh = other.give("controller")
    contexts = Contexts(Tls(cert=cert, key=key))
    async with serving(contexts) as url:
        assert await ask(url, Tls(ca=ours.cert)) == []
        cert.write_bytes(b"half of a cert")
        assert not contexts.renew()
        assert await ask(url, Tls(ca=ours.cert)) == []
        cert.write_bytes(fresh[0].read_bytes())
        key.write_bytes(fresh[1].read_bytes())
        assert contexts.renew()
        assert await ask(url, Tls(ca=other.cert)) == []
        with pytest.raises(Unreachable):
            await ask(url, Tls(ca=ours.cert))


@pytest.mark.parametrize("key", ["tls_cert", "tls_ca", "tls_client_ca"])
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, key: str) -> None:
    cert, private = Authority(tmp_path).give("controller")
    none = tmp_path / "none.pem"
    good = {"cert": cert, "key": private}
    bad = {"tls_cert": {**good, "cert": none}, "tls_ca": {"ca": none}, "tls_client_ca": {**good, "client_ca": none}}
    with pytest.raises(ConfigError, match=rf"{key}.*none\.pem cannot be used"):
        Contexts(Tls(**bad[key]))


def test_no_certificate_names_nobody() -> None:
    assert names(None) == frozenset()
    assert names({}) == frozenset()
