"""The page before an order, and the order itself."""

from aiohttp import web

from controller.core.fleet.views import View
from controller.deciding.conductor import Conductor
from controller.door.access import Access
from controller.pages.foretold import foretold
from controller.pages.frame import Frame, ours, tell
from controller.pages.orders import Asked, Forms
from controller.pages.words import Names, plain
from vocab.errors import CorralError
from vocab.lines import Subject


class Ordering:
    """GET asks and says what it would do; POST does it and goes back to where the link was."""

    def __init__(self, frame: Frame, forms: Forms, access: Access, conductor: Conductor) -> None:
        self._frame = frame
        self._forms = forms
        self._access = access
        self._conductor = conductor

    async def ask(self, request: web.Request) -> web.StreamResponse:
        """Say what it would do, and ask for a reason."""
        return await self._page(request, "", "")

    async def give(self, request: web.Request) -> web.StreamResponse:
        """Do it."""
        given = await request.clone(client_max_size=64 * 1024).post()
        if not self._access.sessions.is_ours(request, str(given.get("key", ""))):
            raise web.HTTPForbidden(reason="this form was made for another session: go back and ask again")
        try:
            outcome = await self._forms.give(request, request.match_info["order"], given)
        except CorralError as error:
            return await self._page(request, str(given.get("reason", "")), str(error))
        response = web.HTTPSeeOther(ours(str(given.get("next", "/"))))
        tell(response, request, outcome)
        raise response

    async def _page(self, request: web.Request, reason: str, wrong: str) -> web.Response:
        view = await self._conductor.view()
        asked = await self._forms.ask(request, request.match_info["order"])
        names = Names(view)
        told = foretold(asked.preview, names) if asked.preview is not None else []
        return self._frame.render(
            request, "order.html", view, status=409 if wrong else 200, asked=asked, order=asked.order,
            about=about(view, asked, request.match_info.get("id", ""), names), told_before=told,
            order_key=self._access.sessions.form_key(request), following=ours(request.query.get("next", "/")),
            wrong=wrong, reason=reason,
        )  # fmt: skip


def about(view: View, asked: Asked, ident: str, names: Names) -> str:
    """What an order is about, from what it really names."""
    fields = asked.fields
    if asked.subject != Subject():
        return names.of(asked.subject)
    if "pool" in fields or "node" in fields:
        return f"pool {fields['pool']}" if "pool" in fields else f"node {fields['node']}"
    if "action" in fields:
        for action in view.actions:
            if action.id == fields["action"]:
                return f"{plain(action.of)} of {names.of(action.subject)}"
        return f"action {fields['action']}"
    for hold in view.holds:
        if hold.id == ident:
            return f"by {hold.owner} on {names.of(hold.subject)}: {hold.reason}"
    for incident in view.incidents:
        if incident.id == ident:
            return f"{incident.code} on {names.of(incident.subject)}"
    return ident or "of the whole fleet"
