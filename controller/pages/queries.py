"""What the address of a page asks for, and the address of the page before it."""

from typing import Any

import msgspec
from aiohttp import web

from controller.api.paging import Paged, PageQuery, cursor_of
from controller.pages.frame import link
from vocab.errors import InputError


def asked(request: web.Request, kind: Any) -> Any:
    """The address as ``kind``; what is empty or of no field is passed over. Raises InputError naming what is wrong."""
    given = {name: value for name, value in request.query.items() if value and name in kind.__struct_fields__}
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        raise InputError(f"the address is wrong: {error}") from error


def older(request: web.Request, query: PageQuery, found: Paged) -> str | None:
    """The address of the page before, if there is one."""
    if found.last is None:
        return None
    given = {name: getattr(query, name) for name in query.__struct_fields__ if name != "cursor"}
    return link(request.path, **given, cursor=cursor_of(found.last))
