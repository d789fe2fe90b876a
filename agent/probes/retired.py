"""Retired memory pages, of boards before row remapping: how many for life, how fast, and what waits for a reset.

The limits are DCGM's (DcgmGPUHardwareLimits.h): 63 pages in all, or more than 15 for double-bit errors with more than
one of them in the last week.
"""

from collections.abc import Sequence

import msgspec

from agent.probes.figures import Read, finding, read
from agent.probes.probe import Finding, Verdict
from agent.probes.scene import Scene
from vocab.events import Recovery, Severity
from vocab.observations import AnyObservation

CODE = "retired_pages"
MOST_PAGES = 63
MANY_DOUBLE = 15
WEEK_S = 7 * 86_400.0
FRESH_DOUBLE = 1
SHOWN = ("retired_pages_sbe", "retired_pages_dbe", "retirement_pending")


class Pages(msgspec.Struct):
    """What was seen of one GPU: the last count for double-bit errors, when it grew, and what was said."""

    double: int | None = None
    grown: list[tuple[float, int]] = []
    said: int = 0  # rank of the severity that was said, plus one


class RetiredProbe(msgspec.Struct):
    """Follows the counts of each GPU."""

    pages: dict[str, Pages] = {}

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """Take one sample of one GPU."""
        seen = read(observation, scene)
        if seen is None:
            return ()
        single, double = seen.readings.retired_pages_sbe, seen.readings.retired_pages_dbe
        pending = seen.readings.retirement_pending
        if single is None and double is None and pending is None:
            return ()
        pages = self.pages.setdefault(seen.gpu, Pages())
        fresh = self._fresh(pages, double, now)
        total = (single or 0) + (double or 0)
        if total >= MOST_PAGES or ((double or 0) > MANY_DOUBLE and fresh > FRESH_DOUBLE):
            return self._say(
                seen, pages, Severity.ERROR, f"{total} pages are retired, {fresh} for new double-bit errors"
            )
        if pending:
            return self._say(seen, pages, Severity.WARNING, "a page retirement waits for a reset")
        pages.said = 0
        return ()

    @staticmethod
    def _fresh(pages: Pages, double: int | None, now: float) -> int:
        """Pages retired for double-bit errors in the last week, as far as it was seen."""
        if double is not None:
            if pages.double is not None and double > pages.double:
                pages.grown = [*pages.grown, (now, double - pages.double)]
            pages.double = double
        pages.grown = [(at, count) for at, count in pages.grown if now - at <= WEEK_S]
        return sum(count for _, count in pages.grown)

    def _say(self, seen: Read, pages: Pages, severity: Severity, text: str) -> Sequence[Finding]:
        if pages.said > severity.rank:
            return ()
        pages.said = severity.rank + 1
        recovery = Recovery.DRAIN_AND_RESET if severity is Severity.WARNING else None
        readings = seen.readings
        first = (CODE, severity.value, readings.retired_pages_sbe, readings.retired_pages_dbe)
        return (
            finding(seen.sample, seen.gpu, CODE, text, names=SHOWN, first=first, severity=severity, recovery=recovery),
        )

    def forget(self, gpu: str) -> None:
        """A reset makes pending retirements real; the counts are for life."""
        if gpu in self.pages:
            self.pages[gpu].said = 0
