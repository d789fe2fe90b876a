"""The kernel's stamps against the wall clock: they do not count suspend, and they drift.

A record that is read live was written just now, whatever its stamp says; the difference corrects the times of a
backlog, and is worth one warning a boot.
"""

import msgspec

from agent.probes.probe import Finding
from agent.probes.scene import Scene
from vocab.events import Evidence, Source, rfc3339

CODE = "kernel_clock_skew"
MOST_S = 60.0  # reading lags by seconds, and a clock drifts by that in a week; suspend is minutes and more


class Skew(msgspec.Struct):
    """By how much the stamps are behind the wall clock, and of which boot that was said."""

    behind_s: float = 0.0
    said: str | None = None

    def live(self, at: float, kernel_s: float | None, scene: Scene, source: str) -> Finding | None:
        """A record that was read just after it was written."""
        if kernel_s is None or scene.boot_at is None or at != at:
            return None
        self.behind_s = at - scene.boot_at - kernel_s
        boot = scene.boot_id or ""
        if abs(self.behind_s) <= MOST_S or self.said == boot:
            return None
        self.said = boot
        stamp, which = rfc3339(at), "behind" if self.behind_s > 0 else "ahead of"
        text = f"the kernel's stamps are {abs(self.behind_s):.0f} s {which} the wall clock"
        return Finding(
            code=CODE,
            at=at,
            source=Source.KERNEL,
            first=(CODE, boot),
            kernel_s=kernel_s,
            fields={"skew_s": round(self.behind_s, 6)},
            text=text,
            evidence=(
                Evidence(source=source, at=stamp, readings={"kernel_s": kernel_s, "boot_at": rfc3339(scene.boot_at)}),
            ),
        )

    def wall(self, kernel_s: float, boot_at: float) -> float:
        """When a record was written, by its stamp."""
        return boot_at + kernel_s + self.behind_s

    def rewind(self) -> None:
        """Another boot."""
        self.behind_s = 0.0
