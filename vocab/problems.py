"""What an answer that is not a success looks like (RFC 9457), and what each status asks of the caller."""

import msgspec

MEDIA_TYPE = "application/problem+json"


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """The same in the form of OpenAI's API, whose clients read only this."""

    type: str
    message: str


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One refusal. ``detail`` says what is wrong with this request, ``next`` what the caller does now."""

    type: str
    title: str
    status: int
    detail: str
    next: str
    error: Fault


class Kind(msgspec.Struct, frozen=True):
    """What all problems of one status have in common."""

    name: str
    title: str
    next: str


KINDS = {
    400: Kind("invalid", "The request is wrong", "Mend what the detail names and send it again."),
    401: Kind(
        "unauthorized",
        "A valid token is needed",
        "Send `Authorization: Bearer …`; the command line reads it from CORRAL_TOKEN_FILE.",
    ),
    403: Kind("forbidden", "This may not be asked from here", "Use a token whose role may, or our own page."),
    404: Kind("not-found", "There is no such thing", "Look at the list that the detail names, or at /openapi.json."),
    405: Kind("method", "This method is not served here", "Use one of the methods in the header Allow."),
    409: Kind("refused", "Understood and refused", "Read why; the same again will be refused again."),
    412: Kind("changed", "It is no longer as you saw it", "Fetch it again, look, and decide anew."),
    413: Kind("too-large", "The body is too large", "Send less at once."),
    415: Kind("media-type", "The body is of the wrong kind", "Send JSON with `Content-Type: application/json`."),
    422: Kind("unprocessable", "The body makes no sense", "Mend what the detail names and send it again."),
    429: Kind("too-many", "Too many requests", "Wait for as many seconds as Retry-After says."),
    431: Kind("headers", "The headers are too large", "Send fewer and shorter headers."),
    500: Kind("internal", "A fault of ours", "Look into the log of this process; ask again later."),
    503: Kind("unavailable", "Not now", "Ask again after Retry-After; nothing acknowledged is lost."),
}  # fmt: skip
_OTHER = Kind("http", "The request was not served", "Look at the detail.")


def problem(status: int, detail: str, *, kind: str | None = None) -> Problem:
    """The problem of this status; ``kind`` names the error more closely for programs."""
    known = KINDS.get(status, _OTHER)
    return Problem(
        type=f"urn:corral:problem:{known.name}",
        title=known.title,
        status=status,
        detail=detail,
        next=known.next,
        error=Fault(type=kind or known.name, message=detail),
    )
