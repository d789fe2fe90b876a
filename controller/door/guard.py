"""What keeps a web page that somebody visits from giving orders to the controller on their machine.

A request that changes something must be JSON (a form cannot send that) and, where a browser names its
origin, come from our own page. The forms of our pages are no JSON: they carry a key (controller.door.sessions), and
must say that they come from our origin. Without a token, on loopback, the Host must be a name of loopback as well:
otherwise a name that an attacker points at 127.0.0.1 would count as our own origin.
"""

from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Middleware

from controller.door.access import FORM
from controller.door.sessions import SAFE
from wire.server import Handler, error_reply


@lru_cache(maxsize=1024)  # each report names one, and they are few
def is_local(host: str) -> bool:
    """Whether a Host header names this machine's loopback; 127.example.com does not."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False


def _refusal(request: web.Request, *, local_only: bool, form: bool) -> str | None:
    host = request.headers.get("Host", "")
    if local_only and not is_local(host):
        return f"Host {host[:80]!r} is not a name of this machine's loopback; set token_file to serve other names"
    if request.method in SAFE:
        return None
    origin = request.headers.get("Origin")
    if origin is not None and origin != f"{request.url.scheme}://{host}":
        return f"Origin {origin[:80]!r} may not change anything here"
    if form and origin is None and request.headers.get("Sec-Fetch-Site") != "same-origin":
        return "a form must say that it comes from a page of this controller (Origin is missing)"
    return None


def guard(*, local_only: bool, forms: frozenset[str] = frozenset()) -> Middleware:
    """A middleware that refuses what a foreign page could send. ``local_only``: no token is asked for.

    ``forms``: routes (by their canonical paths) that take the forms of our own pages.
    """

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        served = request.match_info.http_exception is None
        resource = request.match_info.route.resource
        form = resource is not None and resource.canonical in forms
        wanted = FORM if form else "application/json"
        if served and request.method not in SAFE and request.content_type != wanted:
            raise web.HTTPUnsupportedMediaType(reason=f"a request that changes something needs Content-Type: {wanted}")
        why = _refusal(request, local_only=local_only, form=form)
        return error_reply("forbidden", why, 403) if why else await handler(request)

    return middleware
