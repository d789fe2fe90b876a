"""``corral scan``: GPU faults in kernel logs."""

import click

from vocab.errors import InputError

HELP = """Find GPU faults in kernel logs of any form: kmsg, dmesg, syslog, journal, container logs, gzip, or -."""


@click.command(help=HELP)
@click.argument("files", nargs=-1, required=True)
@click.option("--json", "mode", flag_value="json", help="One event a line, as JSON.")
@click.option("--parse", "mode", flag_value="parse", help="One parsed record a line, as JSON, without judgement.")
@click.option("--tz", help="Time zone of stamps that name none, for example Europe/Berlin (default: UTC).")
@click.option("--now", help="The time to take for now (RFC 3339), for stamps without a year.")
@click.option("--boot-time", help="When the machine booted (RFC 3339), for stamps in seconds since boot.")
def command(files: tuple[str, ...], mode: str | None, tz: str | None, now: str | None, boot_time: str | None) -> int:
    """Scan."""
    import sys  # the streams are bound when the command runs

    from corral.scan import scan  # the parser's tables are loaded only for this command
    from corral.terminal import Fitted
    from vocab.events import epoch_s

    def stamp(name: str, text: str | None) -> float | None:
        try:
            return epoch_s(text) if text else None
        except ValueError as error:
            raise InputError(f"--{name}: {text!r} is not a time like 2026-01-31T12:00:00Z") from error

    out = sys.stdout if mode else Fitted(sys.stdout)
    return scan(list(files), mode or "text", tz, stamp("now", now), stamp("boot-time", boot_time), out, sys.stderr)
