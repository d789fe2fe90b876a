"""What all pages share: templates with their words, files, headers, and who looks.

Everything is rendered here and works without a script; scripts bring a page up to date while it is open.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from aiohttp import web
from aiohttp.typedefs import Middleware
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from controller.core.fleet.views import View
from controller.door.access import CALLER, Access, Caller
from controller.door.sessions import SAFE
from controller.pages import words
from controller.pages.orders import Forms
from controller.pages.words import Names
from vocab.clock import Clock
from vocab.errors import CorralError, InputError, Refused
from vocab.runbooks import runbook
from vocab.states import ActionState

HERE = Path(__file__).parent
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # with none at all, browsers do not say from where a form comes
    "Cache-Control": "no-cache",  # a new version's scripts must not meet an old page
}
KINDS = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
TOLD = "corral-told"  # the cookie with what came of an order, for the next page
TOLD_S = 20
READY_S = 30.0
NOT_READY = f"the page was not ready within {READY_S:.0f} s"
NOT_KNOWN = f"there was no answer within {READY_S:.0f} s: see the audit whether it was done, before you order it again"
LARGE = 64 * 1024  # from here on a page is packed, if the browser takes that

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Frame:
    """Renders pages. Files are read once; nothing outside the package can be reached."""

    def __init__(self, version: str, access: Access, forms: Forms, clock: Clock) -> None:
        self._templates = Environment(
            loader=FileSystemLoader(HERE / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            auto_reload=False,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        for name in ("tone", "shape", "plain", "clock", "stamp", "moment", "age", "share", "figure", "gib", "standing"):
            self._templates.filters[name] = getattr(words, name)
        self._templates.filters["runbook"] = runbook
        self._templates.globals.update(kind=words.kind, weight=words.weight, evidence=words.evidence, link=link)
        self._static = {path.name: path.read_text() for path in (HERE / "static").iterdir() if path.suffix in KINDS}
        self._version = version
        self._access = access
        self._forms = forms
        self._clock = clock

    def render(
        self, request: web.Request, template: str, view: View | None = None, status: int = 200, **facts: Any
    ) -> web.Response:
        """A page; with a ``view`` its head says how the fleet stands."""
        names = Names(view) if view is not None else None
        caller = request.get(CALLER)
        told = unquote(request.cookies.get(TOLD, ""))
        body = self._templates.get_template(template).render(
            version=self._version,
            path=request.path,
            here=request.path_qs,
            caller=caller,
            signed_in=self._access.asks and isinstance(caller, Caller),
            may=lambda order: caller is not None and self._forms.may(request, order),
            told=told,
            view=view,
            waiting=[each for each in view.actions if each.state is ActionState.WAITING] if view is not None else [],
            names=names,
            sentence=lambda line: words.sentence(line, names or Names(NOBODY)),
            now=self._clock.now(),
            **facts,
        )
        response = web.Response(text=body, content_type="text/html", headers=HEADERS, status=status)
        if told:
            response.del_cookie(TOLD, path="/")
        if len(body) > LARGE and "order_key" not in facts:  # what is secret is never packed with what is given
            response.enable_compression()
        return response

    def static(self, name: str) -> web.Response:
        """A script, a style sheet or a picture."""
        if name not in self._static:
            raise web.HTTPNotFound(reason=f"there is no file {name[:60]!r}")
        return web.Response(text=self._static[name], content_type=KINDS[Path(name).suffix], headers=HEADERS)

    def page(self, handler: Handler) -> Handler:
        """The handler, with its refusals as pages."""

        async def shown(request: web.Request) -> web.StreamResponse:
            try:
                async with asyncio.timeout(READY_S):
                    return await handler(request)
            except web.HTTPException as error:
                if error.status < 400:
                    raise
                return self._error(request, error.status, words.without_paths(error.reason))
            except CorralError as error:
                status = 400 if isinstance(error, InputError) else 409 if isinstance(error, Refused) else 503
                return self._error(request, status, str(error))
            except TimeoutError:
                return self._error(request, 503, NOT_READY if request.method in SAFE else NOT_KNOWN)

        return shown

    @property
    def lost(self) -> Middleware:
        """The middleware that tells a person, and no program, by a page that there is nothing at an address."""

        @web.middleware
        async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
            try:
                return await handler(request)
            except web.HTTPNotFound as error:
                asks = request.method in SAFE and "text/html" in request.headers.get("Accept", "")
                if not asks or request.path.startswith("/api/"):
                    raise
                return self._error(request, error.status, f"Nothing is served at {request.path[:200]}.")

        return middleware

    def _error(self, request: web.Request, status: int, why: str) -> web.Response:
        return self.render(request, "error.html", status=status, code=status, why=why)


NOBODY = View(
    paused=False, settled=True, nodes=(), deployments=(), replicas=(), incidents=(), conditions=(), holds=(),
    actions=(), counts={},
)  # fmt: skip


def link(path: str, **query: object) -> str:
    """An address of ours, with what is not empty of the query."""
    given = "&".join(
        f"{name.replace('__', '.')}={quote(str(value), safe='')}" for name, value in query.items() if value
    )
    return f"{path}?{given}" if given else path


def ours(address: str) -> str:
    """The address, if it is a page of this controller; else the first page."""
    plain = address.startswith("/") and not address.startswith(("//", "/\\")) and address.isprintable()
    return address if plain else "/"


def tell(response: web.StreamResponse, request: web.Request, text: str) -> None:
    """Have the next page say this."""
    response.set_cookie(
        TOLD, quote(text[:600]), max_age=TOLD_S, httponly=True, samesite="Lax", secure=request.secure, path="/"
    )
