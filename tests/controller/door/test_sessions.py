"""A browser that has signed in may look, and sends our own forms; nothing else that a browser holds gives an order."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from controller.deciding.mind import real_core
from tests.controller.house import House, batch, house, uuid

HOLD = f"/orders/hold?subject.gpu={uuid(0)}"


class Browser:
    """Keeps cookies, and says where its forms come from as browsers do."""

    def __init__(self, home: House, session: aiohttp.ClientSession) -> None:
        self.home = home
        self._session = session

    async def get(self, path: str) -> tuple[int, str]:
        async with self._session.get(self.home.base + path, allow_redirects=False) as answer:
            return answer.status, await answer.text()

    async def post(self, path: str, headers: dict[str, str] | None = None, **form: str) -> tuple[int, str, str]:
        where = {"Origin": self.home.base} if headers is None else headers
        async with self._session.post(self.home.base + path, data=form, headers=where, allow_redirects=False) as answer:
            return answer.status, await answer.text(), answer.headers.get("Location", "")

    async def key(self, path: str = HOLD) -> str:
        """The form key that a page of this session carries."""
        _, text = await self.get(path)
        found = re.search(r'name="key" value="(\w+)"', text)
        assert found is not None, text
        return found[1]


@asynccontextmanager
async def opened(folder: Path, *, token: bool = True) -> AsyncIterator[Browser]:
    settings = {}
    if token:
        (folder / "token").write_text("s3cret")
        (folder / "token").chmod(0o600)
        settings["token_file"] = str(folder / "token")
    async with (
        house(folder / "state", make_core=real_core, **settings) as home,
        aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session,
    ):
        await home.post("agent/batch", batch())
        yield Browser(home, session)


async def test_a_session_looks_and_its_cookie_alone_orders_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path) as browser:
        assert (await browser.get("/api/v1/fleet"))[0] == 401
        assert (await browser.post("/sign-in", token="wrong"))[0] == 401
        assert await browser.post("/sign-in", token="s3cret", next="/audit") == (303, "303: See Other", "/audit")
        assert (await browser.get("/"))[0] == 200
        assert (await browser.get("/api/v1/fleet"))[0] == 200
        async with browser._session.post(browser.home.base + "/api/v1/pause", json={"reason": "evil"}) as answer:
            assert answer.status == 401


@pytest.mark.parametrize("away", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:1"])
async def test_signing_in_leads_to_no_other_site(tmp_path: Path, away: str) -> None:
    async with opened(tmp_path) as browser:
        assert (await browser.post("/sign-in", token="s3cret", next=away))[2] == "/"


async def test_a_form_needs_its_key_its_origin_and_a_reason(tmp_path: Path) -> None:
    async with opened(tmp_path) as browser:
        await browser.post("/sign-in", token="s3cret")
        key, form = await browser.key(), {"subject.gpu": uuid(0), "reason": "fan noise"}
        assert (await browser.post(HOLD, **form))[0] == 403
        assert (await browser.post(HOLD, {"Origin": "http://evil.example"}, key=key, **form))[0] == 403
        assert (await browser.post(HOLD, {}, key=key, **form))[0] == 403
        status, text, _ = await browser.post(HOLD, key=key, **{**form, "reason": ""})
        assert status == 409
        assert "a reason is needed" in text
        assert await browser.home.get("holds") == []
        assert (await browser.post(HOLD, key=key, next="/audit", **form))[2] == "/audit"
        (hold,) = await browser.home.get("holds")
        assert hold["reason"].startswith("fan noise")


async def test_the_key_of_another_session_opens_no_form(tmp_path: Path) -> None:
    async with opened(tmp_path) as browser:
        await browser.post("/sign-in", token="s3cret")
        stale = await browser.key()
        await browser.post("/sign-in", token="s3cret")
        assert (await browser.post(HOLD, key=stale, **{"subject.gpu": uuid(0), "reason": "x"}))[0] == 403


async def test_forms_work_where_no_token_is_asked_for_and_still_need_their_key(tmp_path: Path) -> None:
    async with opened(tmp_path, token=False) as browser:
        form = {"subject.gpu": uuid(0), "reason": "fan noise"}
        assert (await browser.post(HOLD, **form))[0] == 403
        assert (await browser.post(HOLD, key=await browser.key(), **form))[0] == 303


async def test_a_role_reaches_as_far_as_on_the_interface_and_ends_with_its_token(tmp_path: Path) -> None:
    async with opened(tmp_path) as browser:
        made = await browser.home.post("tokens", {"name": "v", "role": "viewer"})
        node = await browser.home.post("tokens", {"name": "n", "role": "node", "node": "n1"})
        assert (await browser.post("/sign-in", token=node["secret"]))[0] == 403
        await browser.post("/sign-in", token=made["secret"])
        assert (await browser.get(HOLD))[0] == 403
        key = await browser.key("/session")
        status, text, _ = await browser.post(HOLD, key=key, **{"subject.gpu": uuid(0), "reason": "x"})
        assert status == 403
        assert "role viewer" in text
        await browser.home.call("DELETE", f"/api/v1/tokens/{made['token']['id']}", object, {"reason": "left"})
        assert (await browser.get("/"))[0] == 303


async def test_signing_out_ends_the_session(tmp_path: Path) -> None:
    async with opened(tmp_path) as browser:
        await browser.post("/sign-in", token="s3cret")
        assert (await browser.post("/sign-out", key="wrong"))[0] == 403
        assert (await browser.post("/sign-out", key=await browser.key("/session")))[0] == 303
        assert (await browser.get("/"))[0] == 303


async def test_a_link_cannot_tick_what_only_the_form_asks(tmp_path: Path) -> None:
    async with opened(tmp_path, token=False) as browser:
        _, text = await browser.get(f"/orders/drain?subject.gpu={uuid(0)}&force=true&verdict=wrong&key=x")
        assert f'name="subject.gpu" value="{uuid(0)}"' in text
        assert re.search(r'<input type="hidden" name="(force|verdict)"', text) is None
        assert 'value="x"' not in text


async def test_every_answer_with_markup_says_that_only_our_own_scripts_run(tmp_path: Path) -> None:
    async with opened(tmp_path, token=False) as browser, aiohttp.ClientSession() as session:
        for path in ("/", "/?show=tiles&only=n1", "/gpus/none", "/orders/none", "/sign-in"):
            async with session.get(browser.home.base + path) as answer:
                assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'"), path
