"""The pages for people: rendered here, from the functions that answer the interface, and live while they are open.

/                  the map of the fleet       /deployments     what is served, by which replicas
/gpus/UUID         one GPU (…/charts)         /policy          what is in force, how often right (…/rules)
/incidents         all, or one (/incidents/ID)  /audit         what people ordered
/runbooks/NAME     what a code means, and what to do
/orders/NAME       before an order: what it would do, and why it is wanted; POST gives it
/sign-in, /session, /docs, /static/FILE
"""

from aiohttp import web

from controller.pages.frame import Frame
from controller.pages.looking import Looking
from controller.pages.ordering import Ordering
from controller.pages.ruling import Ruling
from controller.pages.runbooks import Runbooks
from controller.pages.signing import Signing
from vocab.roles import LOOKS, Role

OPEN_PATHS = frozenset({"/docs", "/sign-in", "/static/*"})  # no facts in them
ORDER = ("/orders/{order}", "/orders/{order}/{id}")
FORMS = frozenset({*ORDER, "/sign-in", "/sign-out"})  # what takes a form and no JSON
SHOWS = frozenset(
    {"/", "/gpus/{uuid}", "/gpus/{uuid}/charts", "/incidents", "/incidents/{id}", "/deployments", "/policy",
     "/policy/rules", "/audit", "/runbooks", "/runbooks/{name}", "/session", *ORDER}
)  # fmt: skip
ROLES: dict[tuple[str, str], frozenset[Role]] = {
    **{("GET", path): LOOKS for path in SHOWS},
    **{("POST", path): LOOKS for path in (*ORDER, "/sign-out")},  # of an order its own row says who may give it
}


class Pages:
    """The pages of one controller."""

    def __init__(self, frame: Frame, looking: Looking, ruling: Ruling, ordering: Ordering, signing: Signing) -> None:
        self._frame = frame
        self._looking = looking
        self._ruling = ruling
        self._runbooks = Runbooks(frame)
        self._ordering = ordering
        self._signing = signing

    def add_to(self, app: web.Application) -> None:
        """Serve them."""
        looking, ruling, ordering, signing = self._looking, self._ruling, self._ordering, self._signing
        page = self._frame.page
        gets = {
            "/": looking.fleet,
            "/gpus/{uuid}": looking.gpu,
            "/gpus/{uuid}/charts": looking.charts,
            "/incidents": looking.incidents,
            "/incidents/{id}": looking.incident,
            "/deployments": looking.deployments,
            "/policy": ruling.policy,
            "/policy/rules": ruling.rules,
            "/audit": ruling.audit,
            "/runbooks": self._runbooks.show,
            "/runbooks/{name}": self._runbooks.show,
            **dict.fromkeys(ORDER, ordering.ask),
            "/sign-in": signing.ask,
            "/session": signing.who,
            "/docs": self.docs,
        }
        for path, handler in gets.items():
            app.router.add_get(path, page(handler))
        for path in ORDER:
            app.router.add_post(path, page(ordering.give))
        app.router.add_post("/sign-in", page(signing.enter))
        app.router.add_post("/sign-out", page(signing.leave))
        app.router.add_get("/static/{name}", self.static)
        app.middlewares.append(self._frame.lost)

    async def docs(self, request: web.Request) -> web.Response:
        """The interface, to read and to try."""
        return self._frame.render(request, "docs.html")

    async def static(self, request: web.Request) -> web.Response:
        """A script, a style sheet or a picture."""
        return self._frame.static(request.match_info["name"])
