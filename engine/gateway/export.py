"""The gateway's metrics: what each room counts, and the gauges that follow the board."""

import contextlib
import logging
from collections.abc import Iterator

from engine.gateway.board import Board
from engine.gateway.table import Entry, routable
from vocab.metrics import GATEWAY
from wire.exposition import Exposition

log = logging.getLogger(__name__)

UNKNOWN = "unknown"


class Export:
    """Counts; nothing here decides."""

    def __init__(self, version: str) -> None:
        self.exposition = Exposition(GATEWAY)
        gauge, counter, histogram = self.exposition.gauge, self.exposition.counter, self.exposition.histogram
        gauge("corral_gateway_build_info").labels(version).set(1)
        self._requests = counter("corral_gateway_requests_total")
        self._retries = counter("corral_gateway_retries_total")
        self._first = histogram("corral_gateway_ttft_seconds")
        self._whole = histogram("corral_gateway_request_duration_seconds")
        self._in_flight = gauge("corral_gateway_in_flight_requests")
        self._held = gauge("corral_gateway_held_requests")
        self._routable = gauge("corral_gateway_routable_replicas")
        self._counted = gauge("corral_gateway_counted_replicas")
        self._panic = gauge("corral_gateway_panic")
        self._panicked = counter("corral_gateway_panic_requests_total")
        self._broken = counter("corral_gateway_streams_broken_total")
        self._resumed = counter("corral_gateway_streams_resumed_total")
        self._pause = histogram("corral_gateway_resume_seconds")
        self._controller = gauge("corral_gateway_controller_up")
        self._deployments: dict[str, bool] = {}  # whether each is in panic
        self._carried: dict[tuple[str, str], int] = {}

    def controller(self, up: bool) -> None:
        """Whether the controller answered."""
        self._controller.set(up)

    def answered(self, deployment: str, code: int, seconds: float) -> None:
        """A request has ended with this status."""
        name = deployment if deployment in self._deployments else UNKNOWN
        self._requests.labels(name, str(code)).inc()
        self._whole.labels(name).observe(seconds)

    def first_byte(self, deployment: str, seconds: float) -> None:
        """The first byte of an answer is on its way."""
        self._first.labels(deployment).observe(seconds)

    def retried(self, deployment: str, reason: str) -> None:
        """A try goes elsewhere."""
        self._retries.labels(deployment, reason).inc()

    def panicked(self, deployment: str) -> None:
        """A request goes to a fenced replica."""
        self._panicked.labels(deployment).inc()

    def broke(self, deployment: str) -> None:
        """A stream broke."""
        self._broken.labels(deployment).inc()

    def resumed(self, deployment: str, reason: str, pause_s: float) -> None:
        """A stream goes on elsewhere, so long after it broke off."""
        self._resumed.labels(deployment, reason).inc()
        self._pause.labels(deployment).observe(pause_s)

    @contextlib.contextmanager
    def carrying(self, entry: Entry) -> Iterator[None]:
        """A request is under way at this replica. The series goes with the last request of a replica that is gone."""
        labels = (entry.listed.deployment, entry.replica)
        self._carried[labels] = self._carried.get(labels, 0) + 1
        self._in_flight.labels(*labels).inc()
        try:
            yield
        finally:
            self._carried[labels] -= 1
            self._in_flight.labels(*labels).dec()

    @contextlib.contextmanager
    def holding(self, deployment: str) -> Iterator[None]:
        """A request waits."""
        name = deployment if deployment in self._deployments else UNKNOWN
        self._held.labels(name).inc()
        try:
            yield
        finally:
            self._held.labels(name).dec()

    def follow(self, board: Board) -> None:
        """Set the gauges as the board says, and tell of a panic that begins or ends."""
        for deployment in board.table.deployments:
            found = routable(board.table, deployment)
            self._routable.labels(deployment).set(len(found.ready))
            self._counted.labels(deployment).set(found.counted)
            self._panic.labels(deployment).set(found.panic)
            self._broken.labels(deployment)  # there from the start, so that the first one is a rise
            self._panicked.labels(deployment)
            self._tell(deployment, len(found.ready), found.counted, panic=found.panic)
        for gone in self._deployments.keys() - board.table.deployments.keys():
            del self._deployments[gone]
            for gauge in (self._routable, self._counted, self._panic, self._held):
                with contextlib.suppress(KeyError):
                    gauge.remove(gone)
        self._drop_replicas(board)

    def _tell(self, deployment: str, ready: int, counted: int, *, panic: bool) -> None:
        before = self._deployments.get(deployment, False)
        self._deployments[deployment] = panic
        told = {"deployment": deployment, "routable": ready, "counted": counted}
        if panic and not before:
            log.error("panic floor: fewer than half are routable, fenced replicas are used too", extra=told)
        elif before and not panic:
            log.warning("the panic is over", extra=told)

    def _drop_replicas(self, board: Board) -> None:
        gone = [key for key, count in self._carried.items() if not count and key[1] not in board.table.entries]
        for key in gone:
            del self._carried[key]
            self._in_flight.remove(*key)
