"""Lists in pages. A cursor names the last thing that was shown, so what is added meanwhile moves no page.

Asked without ``cursor`` a list comes bare; asked with it (empty for the first page) it comes as ``{"items", "next"}``.
Either way the header ``Link`` leads to the next page while there is one.
"""

import base64
import binascii
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Annotated, Any, TypeVar

import msgspec
from aiohttp import web

from vocab.errors import InputError

T = TypeVar("T")

PAGE = 100
Limit = Annotated[int, msgspec.Meta(ge=1, le=1000)]
Cursor = Annotated[str, msgspec.Meta(max_length=600)]


class PageQuery(msgspec.Struct, frozen=True, kw_only=True):
    """``cursor``: go on behind it (empty: from the beginning); ``limit``: at most so many."""

    cursor: Cursor | None = None
    limit: Limit | None = None

    @property
    def most(self) -> int:
        """How many a page holds."""
        return self.limit or PAGE


class Paged(msgspec.Struct, frozen=True):
    """One page. ``last`` names its end for the next one, None at the end of the list."""

    items: Sequence[Any]
    last: str | None


def shown(request: web.Request, page: Paged) -> tuple[Any, dict[str, str] | None]:
    """The answer's body and headers."""
    following = None if page.last is None else cursor_of(page.last)
    body = {"items": page.items, "next": following} if "cursor" in request.query else page.items
    if following is None:
        return body, None
    address = request.rel_url.update_query(cursor=following)
    return body, {"Link": f'<{address}>; rel="next"'}


def cursor_of(last: str) -> str:
    """The cursor that names the last thing of a page."""
    return base64.urlsafe_b64encode(last.encode()).decode()


def behind(query: PageQuery) -> str | None:
    """What the cursor names, None for the beginning. Raises InputError."""
    if not query.cursor:
        return None
    try:
        return base64.b64decode(query.cursor.encode(), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise wrong_cursor(query) from error


def wrong_cursor(query: PageQuery) -> InputError:
    """What is said of a cursor that no answer has given."""
    return InputError(f"`cursor` is {str(query.cursor)[:40]!r}: it must be the `next` of an answer of this list")


def before(query: PageQuery) -> int | None:
    """The number that the cursor of a history names. Raises InputError."""
    named = behind(query)
    if named is None:
        return None
    if not named.isdecimal() or not named.isascii() or len(named) > 18:
        raise wrong_cursor(query)
    return int(named)


def page(items: Iterable[T], key: Callable[[T], str], query: PageQuery) -> Paged:
    """A page of what stands now, in the order of ``key``; all of it in its own order if none is asked for."""
    if query.cursor is None and query.limit is None:
        return Paged(list(items), None)
    after = behind(query) or ""
    rest = sorted((each for each in items if key(each) > after), key=key)
    found = rest[: query.most]
    return Paged(found, key(found[-1]) if len(rest) > len(found) else None)


def in_order(items: Iterable[T], key: Callable[[T], str], query: PageQuery) -> Paged:
    """As ``page``, of what comes in its order and begins behind the cursor: no more is looked at than is shown."""
    if query.cursor is None and query.limit is None:
        return Paged(list(items), None)
    found = list(islice(items, query.most + 1))
    more, shown_now = len(found) > query.most, found[: query.most]
    return Paged(shown_now, key(shown_now[-1]) if more else None)
