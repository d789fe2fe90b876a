"""Who is let in. Pure state: the HTTP side asks and tells, the clock comes in as an argument.

    loading --loaded--> open <--fence / lift--> fenced
       any of these --exit--> draining, which never goes back

A *fence* (``POST /drain`` without exit) keeps new work out while the requests under way go on; only a request
that carries ``x-corral-panic: 1`` still comes in, for gateways that have nothing better left. *Draining* lets
nothing in and ends the process: with the last request, or cutting off what is left when the time is over.
"""

from vocab.errors import CorralError, Refused

_WHY = {
    "loading": "the model is still being loaded",
    "fenced": "this replica takes no new requests",
    "draining": "this replica finishes its requests and stops",
    "failed": "the step loop of this replica has stopped",
    "cut_off": "this replica stopped before the answer was whole",
    "corrupt": "this replica's device was found to compute wrong",
    "queue_full": "too many requests wait on this replica",
}


class Unavailable(CorralError):
    """This replica takes no new work now; another one may. ``code`` says why."""

    def __init__(self, code: str, retry_after_s: int = 1) -> None:
        super().__init__(_WHY[code])
        self.code = code
        self.retry_after_s = retry_after_s


class Gate:
    """Whether this replica admits requests, and how many are under way."""

    def __init__(self) -> None:
        self.open_requests = 0
        self.loaded = False
        self.failed = False
        self.corrupt = False
        self.fenced = False
        self.cut_off = False
        self.exit_at: float | None = None  # monotonic seconds

    @property
    def closed_by(self) -> str:
        """The word for what keeps new work out, empty if nothing does."""
        if self.failed:
            return "failed"
        if self.exit_at is not None:
            return "draining"
        if not self.loaded:
            return "loading"
        if self.corrupt:
            return "corrupt"
        return "fenced" if self.fenced else ""

    def ready(self) -> tuple[bool, str]:
        """The answer of /ready."""
        return not self.closed_by, self.closed_by or "ready"

    def enter(self, *, panic: bool) -> None:
        """Count a request in. Raises Unavailable."""
        code = self.closed_by
        if code and not (panic and code == "fenced"):
            raise Unavailable(code)
        self.open_requests += 1

    def check_begun(self) -> None:
        """Whether a request that was let in can still begin to be computed. Raises Unavailable."""
        if self.failed or self.cut_off:
            raise Unavailable("failed" if self.failed else "cut_off")

    def leave(self) -> None:
        """Count a request out, once its last byte is written."""
        self.open_requests -= 1

    def fence(self) -> None:
        """Admit nothing new; what is under way goes on."""
        self.fenced = True

    def lift(self) -> None:
        """Admit again. Raises Refused if the process is going to exit."""
        if self.exit_at is not None:
            raise Refused("this replica was told to exit; start a new one instead")
        self.fenced = False

    def exit(self, at: float) -> None:
        """Exit when the last request has ended, at ``at`` (monotonic) at the latest. Never later than said before."""
        self.exit_at = at if self.exit_at is None else min(at, self.exit_at)
