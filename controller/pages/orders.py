"""The orders that pages can give. A link leads to a page that says what it would do; its form gives the order.

A form runs the very row of the interface (controller.api), with its roles, its checks and its audit.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from aiohttp import web

from controller.api.forms import OrderQuery
from controller.api.route import Call, Route
from controller.core.preview import Preview
from controller.door.access import CALLER
from vocab.errors import CorralError, InputError
from vocab.lines import Subject

REASON = "a reason is needed: it is kept in the audit"
OF_THE_FORM = frozenset({"next", "reason", "key", "force", "now", "verdict"})  # given on the page, by nobody's link
ASKED = "your reason, which you give below"  # of a question what an order would do: shown there, and stored nowhere


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """How an order reads. ``does``: what it leads to; ``force``, ``now``: what the boxes of these names mean."""

    route: str
    title: str
    does: str
    yes: str
    force: str = ""
    now: str = ""
    verdict: bool = False


ORDERS: Mapping[str, Order] = {
    "hold": Order(
        route="create_holds",
        title="Hold",
        does="It takes no new work until the hold is lifted. What runs there goes on.",
        yes="Place the hold",
        force="Hold it although a limit of the policy has no room for it",
    ),
    "lift": Order(
        route="delete_holds",
        title="Lift the hold",
        does="What else holds it still stands; without another hold it takes work again.",
        yes="Lift the hold",
        force="Lift it although somebody else placed it",
    ),
    "drain": Order(
        route="create_drains",
        title="Drain",
        does="It is held, its replicas are started elsewhere, and then let end their requests and stop.",
        yes="Drain",
        force="Hold it although a limit of the policy has no room for it",
        now="End a drain that is under way: open requests end with an error",
    ),
    "release": Order(
        route="create_releases",
        title="Put back to service",
        does="Its conditions and the policy's holds end, whatever the policy says of it. Holds of others stay.",
        yes="Put back to service",
    ),
    "pause": Order(
        route="create_pause",
        title="Pause automation",
        does="Nothing harmful is done any more: no fence, hold, drain or repair. Releases and recovery go on.",
        yes="Pause",
    ),
    "resume": Order(
        route="create_resume",
        title="Let automation act again",
        does="What waited for the end of this pause may happen at once.",
        yes="Resume",
    ),
    "approve": Order(
        route="create_approvals",
        title="Approve",
        does="The action is ordered at once, and disrupts what is listed.",
        yes="Approve",
        force="Do it although a deployment is then under its floor",
    ),
    "stop": Order(
        route="create_cancels",
        title="Call off",
        does="The action is not done. What it was for stays as it is, and is left to you.",
        yes="Call it off",
    ),
    "close": Order(
        route="close_incident",
        title="Close the incident",
        does="Nothing more is done for it. Whether Corral was right counts for the precision of its rule.",
        yes="Close it",
        verdict=True,
    ),
}


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A page before an order: what it is about, what it would lead to (None: not known before), and its fields."""

    order: Order
    name: str
    subject: Subject
    fields: dict[str, str]
    preview: Preview | None
    why_not: str


class Forms:
    """Orders by name, over the rows of the interface."""

    def __init__(self, routes: Iterable[Route]) -> None:
        named = {route.name: route for route in routes}
        self._rows = {name: named[order.route] for name, order in ORDERS.items() if order.route in named}

    def may(self, request: web.Request, name: str) -> bool:
        """Whether who asks may give this order."""
        return name in self._rows and request[CALLER].role in self._rows[name].may

    async def give(self, request: web.Request, name: str, given: Mapping[str, Any]) -> str:
        """Do it; what came of it. Raises what the row raises, and HTTPForbidden."""
        row = self._row(request, name)
        body = _body(row, {key: str(value) for key, value in given.items()})
        if not getattr(body, "reason", ""):
            raise InputError(REASON)
        answer = await row.run(Call(request, OrderQuery() if row.query else None, body))
        outcome = getattr(answer, "outcome", None)
        return str(outcome) if outcome else f"{ORDERS[name].title}: done"

    async def ask(self, request: web.Request, name: str) -> Asked:
        """What it would lead to. Raises HTTPForbidden and HTTPNotFound."""
        row, order = self._row(request, name), ORDERS[name]
        fields = {key: value for key, value in request.query.items() if key not in OF_THE_FORM}
        preview, why_not = None, ""
        if row.query is not None:
            try:
                answer = await row.run(Call(request, OrderQuery(dry_run=True), _body(row, {**fields, "reason": ASKED})))
                preview, why_not = _as_preview(answer)
            except web.HTTPNotFound:
                raise
            except CorralError as error:
                why_not = str(error)
        subject = Subject(**{key.partition(".")[2]: value for key, value in fields.items() if key in SUBJECTS})
        return Asked(order=order, name=name, subject=subject, fields=fields, preview=preview, why_not=why_not)

    def _row(self, request: web.Request, name: str) -> Route:
        row = self._rows.get(name)
        if row is None:
            raise web.HTTPNotFound(reason=f"there is no order {name[:40]!r}")
        caller = request[CALLER]
        if caller.role not in row.may:
            wanted = ", ".join(sorted(row.may))
            raise web.HTTPForbidden(reason=f"{caller.name!r} has the role {caller.role}; this needs one of: {wanted}")
        return row


SUBJECTS = frozenset(f"subject.{name}" for name in Subject.__struct_fields__)


def _body(row: Route, given: Mapping[str, str]) -> Any:
    """The fields of a form as the row's body. Raises InputError naming the field that is wrong."""
    made: dict[str, Any] = {}
    for name, value in given.items():
        outer, _, inner = name.partition(".")
        if value == "" or outer not in row.body.__struct_fields__:
            continue
        if inner:
            made.setdefault(outer, {})[inner] = value
        else:
            made[outer] = value
    try:
        return msgspec.convert(made, row.body, strict=False)
    except msgspec.ValidationError as error:
        raise InputError(_missing(str(error))) from error


def _missing(told: str) -> str:
    return REASON if "`reason`" in told else f"the form is wrong: {told}"


def _as_preview(answer: Any) -> tuple[Preview | None, str]:
    if isinstance(answer, web.Response):  # a preview where the order itself answers otherwise
        answer = msgspec.json.decode(answer.body if isinstance(answer.body, bytes) else b"null", type=Preview | None)
    return (answer, answer.refused or "") if isinstance(answer, Preview) else (None, "")
