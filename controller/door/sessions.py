"""Who has signed in with a browser. A session stands in the memory of one controller and ends with it.

The cookie holds 256 random bits and nothing of the token: cookies know no ports, so another server of the same machine
may be shown it. It opens what can be looked at, and the forms of the pages, which also carry the session's form key: a
page of somebody else cannot read that, so it cannot send our forms.
"""

import hmac
import secrets
from collections.abc import Callable
from hashlib import sha256
from typing import Generic, TypeVar

from aiohttp import web

from vocab.clock import Clock

COOKIE = "corral-session"
LASTS_S = 12 * 3600.0  # a working day
MOST = 10_000  # people with a token, and their browsers
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})

Who = TypeVar("Who")


class Sessions(Generic[Who]):
    """Sessions by the value of their cookie; ``counts`` says of a caller whether it is still let in."""

    def __init__(self, clock: Clock, counts: Callable[[Who], bool]) -> None:
        self._clock = clock
        self._counts = counts
        self._open: dict[str, tuple[Who, float]] = {}  # and until when
        self._key = secrets.token_bytes(32)

    def begin(self, who: Who) -> str:
        """A new session; the value of its cookie."""
        now = self._clock.monotonic()
        self._open = {name: each for name, each in self._open.items() if each[1] > now}
        while len(self._open) >= MOST:
            del self._open[next(iter(self._open))]
        name = secrets.token_urlsafe(32)
        self._open[name] = (who, now + LASTS_S)
        return name

    def end(self, request: web.Request) -> None:
        """Forget the session of a request, if it has one."""
        self._open.pop(request.cookies.get(COOKIE, ""), None)

    def find(self, request: web.Request) -> Who | None:
        """Who has signed in, if that still counts."""
        found = self._open.get(request.cookies.get(COOKIE, ""))
        if found is None or found[1] <= self._clock.monotonic() or not self._counts(found[0]):
            return None
        return found[0]

    def form_key(self, request: web.Request) -> str:
        """What a form of ours carries: bound to the session, and to this life of the controller."""
        name = request.cookies.get(COOKIE, "")
        return hmac.new(self._key, name.encode("utf-8", "surrogateescape"), sha256).hexdigest()

    def is_ours(self, request: web.Request, given: str) -> bool:
        """Whether a form with this key was made for the session of ``request``."""
        return hmac.compare_digest(self.form_key(request).encode(), given.encode("utf-8", "surrogateescape"))


def cookie(response: web.StreamResponse, request: web.Request, name: str) -> None:
    """Give a browser its session: no script reads it, and no form of another site takes it along."""
    response.set_cookie(COOKIE, name, httponly=True, samesite="Lax", secure=request.secure, path="/")
