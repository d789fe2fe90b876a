"""Signing in with a token and out again; where nobody is asked for a token there is nothing to sign."""

from aiohttp import web

from controller.door.access import CALLER, Access
from controller.door.sessions import COOKIE, cookie
from controller.pages.frame import Frame, ours
from vocab.roles import LOOKS

WRONG = "This token does not count here: it is mistyped, has ended, or was revoked."


class Signing:
    """The pages of it."""

    def __init__(self, frame: Frame, access: Access) -> None:
        self._frame = frame
        self._access = access

    async def ask(self, request: web.Request) -> web.StreamResponse:
        """Ask for a token."""
        return self._page(request, ours(request.query.get("next", "/")), "")

    async def enter(self, request: web.Request) -> web.StreamResponse:
        """Begin a session for who shows a token that may look."""
        given = await request.clone(client_max_size=16 * 1024).post()
        following = ours(str(given.get("next", "/")))
        caller = self._access.bearer(str(given.get("token", "")).strip())
        if caller is None:
            return self._page(request, following, WRONG, status=401)
        if caller.role not in LOOKS:
            return self._page(request, following, f"A token of role {caller.role} opens no page.", status=403)
        response = web.HTTPSeeOther(following)
        cookie(response, request, self._access.sessions.begin(caller))
        raise response

    async def who(self, request: web.Request) -> web.StreamResponse:
        """Who is signed in."""
        key = self._access.sessions.form_key(request)
        return self._frame.render(request, "session.html", order_key=key, role=request[CALLER].role)

    async def leave(self, request: web.Request) -> web.StreamResponse:
        """End the session."""
        given = await request.clone(client_max_size=16 * 1024).post()
        if not self._access.sessions.is_ours(request, str(given.get("key", ""))):
            raise web.HTTPForbidden(reason="this form was made for another session: reload the page")
        self._access.sessions.end(request)
        response = web.HTTPSeeOther("/sign-in")
        response.del_cookie(COOKIE, path="/")
        raise response

    def _page(self, request: web.Request, following: str, wrong: str, status: int = 200) -> web.Response:
        return self._frame.render(request, "sign_in.html", status=status, following=following, wrong=wrong)
