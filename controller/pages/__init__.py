"""The live pages: shells without facts, rendered once; their scripts fetch everything from the API."""

from pathlib import Path

from aiohttp import web
from jinja2 import Environment, FileSystemLoader, StrictUndefined

HERE = Path(__file__).parent
OPEN_PATHS = frozenset({"/", "/docs", "/gpus/*", "/static/*"})  # no facts in them; the API asks for the token

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",  # a new version's scripts must not meet an old page
}
KINDS = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


class Pages:
    """The pages of one controller. Files are read once; nothing outside the package can be reached."""

    def __init__(self, version: str) -> None:
        self._templates = Environment(
            loader=FileSystemLoader(HERE / "templates"), autoescape=True, undefined=StrictUndefined, auto_reload=False
        )
        self._static = {path.name: path.read_text() for path in (HERE / "static").iterdir() if path.suffix in KINDS}
        self._version = version

    def add_to(self, app: web.Application) -> None:
        """Add ``/``, ``/docs``, ``/gpus/UUID`` and ``/static/FILE``."""
        app.router.add_get("/", self.fleet)
        app.router.add_get("/docs", self.docs)
        app.router.add_get("/gpus/{uuid}", self.gpu)
        app.router.add_get("/static/{name}", self.static)

    def _page(self, template: str, **facts: str) -> web.Response:
        body = self._templates.get_template(template).render(version=self._version, **facts)
        return web.Response(text=body, content_type="text/html", headers=HEADERS)

    async def fleet(self, _: web.Request) -> web.Response:
        """The fleet."""
        return self._page("fleet.html")

    async def gpu(self, request: web.Request) -> web.Response:
        """One GPU."""
        return self._page("gpu.html", uuid=request.match_info["uuid"])

    async def docs(self, _: web.Request) -> web.Response:
        """The API, to read and to try."""
        return self._page("docs.html")

    async def static(self, request: web.Request) -> web.Response:
        """A script, a style sheet or a picture."""
        name = request.match_info["name"]
        if name not in self._static:
            raise web.HTTPNotFound(reason=f"there is no file {name[:60]!r}")
        return web.Response(text=self._static[name], content_type=KINDS[Path(name).suffix], headers=HEADERS)
