"""The gateway's HTTP face: OpenAI's completions, the list of models, health and metrics."""

from aiohttp import web

from engine.gateway.ask import understand
from engine.gateway.board import Board
from engine.gateway.export import UNKNOWN, Export
from engine.gateway.proxy import CLIENT_GONE, Proxy
from engine.gateway.replies import Failure
from vocab.errors import InputError
from wire.server import Answer, make_app, reply

CARRIED = ("/v1/chat/completions", "/v1/completions")
CLIENT_LEFT = 499  # the client closed the connection before the answer was complete


class Routes:
    """The handlers, one a route."""

    def __init__(self, board: Board, proxy: Proxy, export: Export) -> None:
        self._board = board
        self._proxy = proxy
        self._export = export

    async def complete(self, request: web.Request) -> web.StreamResponse:
        """POST a completion: carried to a replica."""
        began, model, code = self._board.now(), UNKNOWN, CLIENT_LEFT
        try:
            ask = understand(request.path, await request.read())
            model = ask.model
            response = await self._proxy.carry(request, ask)
        except InputError as error:
            response = Failure(400, "bad_request", str(error), kind="invalid_request_error").reply()
        except Failure as failure:
            response = failure.reply()
        except CLIENT_GONE:
            self._export.answered(model, CLIENT_LEFT, self._board.now() - began)
            raise
        code = response.status
        self._export.answered(model, code, self._board.now() - began)
        return response

    async def models(self, _: web.Request) -> web.Response:
        """GET the deployments, as OpenAI's models."""
        names = sorted(self._board.table.deployments)
        return reply({"object": "list", "data": [_model(name) for name in names]})

    async def model(self, request: web.Request) -> web.Response:
        """GET one deployment."""
        name = request.match_info["name"]
        if name in self._board.table.deployments:
            return reply(_model(name))
        message = f"The model {name!r} does not exist"
        return Failure(404, "model_not_found", message, kind="invalid_request_error", param="model").reply()


def _model(name: str) -> dict[str, object]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "corral"}


def build(routes: Routes, export: Export, ready: Answer, token: str | None) -> web.Application:
    """The application with all its routes."""
    app = make_app(ready=ready, metrics=export.exposition, token=token)
    for path in CARRIED:
        app.router.add_post(path, routes.complete)
    app.router.add_get("/v1/models", routes.models)
    app.router.add_get("/v1/models/{name}", routes.model)
    return app
