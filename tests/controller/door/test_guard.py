"""A page that somebody visits cannot give orders, and a token is asked for where one is set."""

from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.controller.house import batch, house, uuid
from vocab.errors import Refused

JSON = {"Content-Type": "application/json"}
BODY = b'{"reason": "evil"}'


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({**JSON, "Origin": "http://evil.example"}, 403),
        ({**JSON, "Origin": "null"}, 403),
        ({**JSON, "Host": "evil.example"}, 403),
        ({**JSON, "Host": "127.0.0.1.evil.example", "Origin": "http://127.0.0.1.evil.example"}, 403),
        ({**JSON, "Host": "localhost:7400", "Origin": "http://localhost:7400"}, 200),
        (JSON, 200),
    ],
)
async def test_order_from_a_foreign_page_is_refused(tmp_path: Path, headers: dict[str, str], status: int) -> None:
    async with house(tmp_path) as home:
        answered, text, _ = await home.raw("POST", "/api/v1/pause", data=BODY, headers=headers)
        assert answered == status, text
        assert (await home.get("fleet"))["paused"] is (status == 200)


async def test_rebound_name_cannot_even_read(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        status, text, _ = await home.raw("GET", "/api/v1/fleet", headers={"Host": "evil.example"})
        assert (status, "loopback" in text) == (403, True)


async def test_page_has_a_strict_policy_and_no_inline_code(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        _, text, headers = await home.raw("GET", "/")
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert "onclick=" not in text
        assert "style=" not in text


async def test_uuid_in_the_page_is_escaped(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        _, text, _ = await home.raw("GET", "/gpus/%22%3E%3Cscript%3Ealert(1)")
        assert "<script>alert" not in text


async def test_files_outside_the_package_are_not_served(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        for path in ("/static/../__init__.py", "/static/%2e%2e%2f__init__.py", "/static/none.js"):
            assert (await home.raw("GET", path))[0] == 404


async def test_token_opens_the_interface_and_pages_lead_to_signing_in(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("s3cret\n")
    token.chmod(0o600)
    async with house(tmp_path / "state", token_file=str(token)) as home:
        await home.post("agent/batch", batch())
        for path in ("/docs", "/sign-in", "/static/page.js", "/healthz", "/readyz"):
            assert (await home.raw("GET", path, headers={"Authorization": ""}))[0] == 200
        for path in ("/", f"/gpus/{uuid(0)}?all=1", "/incidents", "/orders/hold"):
            status, _, headers = await home.raw("GET", path, headers={"Authorization": ""}, allow_redirects=False)
            assert (status, unquote(headers["Location"])) == (303, f"/sign-in?next={path}")
        for path in ("/api/v1/fleet", "/metrics", "/openapi.json", "/sd/agents", "/static/x/y", "/gpus/a/b"):
            assert (await home.raw("GET", path, headers={"Authorization": "Bearer wrong"}))[0] in {401, 404}
        assert (await home.raw("GET", "/api/v1/fleet", headers={"Authorization": "Bearer wrong"}))[0] == 401
        assert len((await home.get("fleet"))["nodes"]) == 1


async def test_token_that_others_can_read_is_refused(tmp_path: Path) -> None:
    from vocab.errors import ConfigError

    token = tmp_path / "token"
    token.write_text("s3cret")
    token.chmod(0o644)
    with pytest.raises(ConfigError, match="others can read this token"):
        async with house(tmp_path / "state", token_file=str(token)):
            pass


async def test_wrong_token_is_refused_over_http(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("s3cret")
    token.chmod(0o600)
    async with house(tmp_path / "state", token_file=str(token)) as home:
        home.session.headers["Authorization"] = "Bearer nope"
        with pytest.raises(Refused, match="CORRAL_TOKEN_FILE"):
            await home.get("fleet")
