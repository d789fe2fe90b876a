"""Tell systemd how we are (sd_notify). Without systemd every call does nothing."""

import os
import socket


def notify(state: str) -> None:
    """Send ``READY=1``, ``WATCHDOG=1``, ``STATUS=...`` or ``STOPPING=1`` to the service manager."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as door:
        door.sendto(state.encode(), address)


def watchdog_s() -> float | None:
    """Seconds between two ``WATCHDOG=1`` (half the limit), or None if nobody watches."""
    limit_us = os.environ.get("WATCHDOG_USEC", "")
    return int(limit_us) / 2_000_000 if limit_us.isdigit() else None
