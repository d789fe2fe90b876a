"""TLS: what a process shows and whom it trusts, renewed without a restart when its files change.

One certificate serves both ways: a process shows it to those who connect and to those whom it calls. Connections
that stand keep what they began with; new ones see the new files. An authority that was trusted once is trusted
until the process ends.
"""

import asyncio
import contextlib
import logging
import ssl
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from vocab.errors import ConfigError

log = logging.getLogger(__name__)

LOOK_S = 10.0  # certificates are renewed days before they end


class Tls(msgspec.Struct, frozen=True, kw_only=True):
    """The files: our certificate and its key, the authority of whom we call, the authority of who calls us."""

    cert: Path | None = None
    key: Path | None = None
    ca: Path | None = None
    client_ca: Path | None = None
    client_required: bool = True  # whether a caller without a certificate is let in at all

    @property
    def files(self) -> tuple[Path, ...]:
        """All that are named."""
        return tuple(path for path in (self.cert, self.key, self.ca, self.client_ca) if path is not None)


class Contexts:
    """The two sides of one process's TLS. Raises ConfigError naming the file that cannot be used."""

    def __init__(self, tls: Tls) -> None:
        self._tls = tls
        self._seen = _stamps(tls.files)
        self.server = None if tls.cert is None else ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.client = ssl.create_default_context()
        if self.server is not None and tls.client_ca is not None:
            self.server.verify_mode = ssl.CERT_REQUIRED if tls.client_required else ssl.CERT_OPTIONAL
        self._load(self.server, self.client)

    def _load(self, server: ssl.SSLContext | None, client: ssl.SSLContext) -> None:
        tls = self._tls
        if tls.cert is not None:
            with _named("tls_cert, tls_key", tls.cert, "a PEM certificate and the key that belongs to it"):
                for context in (client, server):
                    if context is not None:
                        context.load_cert_chain(tls.cert, tls.key)
        if tls.ca is not None:
            with _named("tls_ca", tls.ca, "a file of PEM certificates"):
                client.load_verify_locations(tls.ca)
        if server is not None and tls.client_ca is not None:
            with _named("tls_client_ca", tls.client_ca, "a file of PEM certificates"):
                server.load_verify_locations(tls.client_ca)

    def renew(self) -> bool:
        """Take the files as they are now. Files that cannot be used are said and change nothing."""
        stamps = _stamps(self._tls.files)
        try:
            self._load(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context())  # half-written files
            self._load(self.server, self.client)
        except ConfigError as error:
            if stamps != self._seen:
                log.error("new TLS files cannot be used, the old ones stay: %s", error)
            self._seen = stamps
            return False
        self._seen = stamps
        log.info("TLS files were read again", extra={"files": [str(path) for path in self._tls.files]})
        return True

    @asynccontextmanager
    async def renewing(self) -> AsyncIterator[None]:
        """Look after the files while the block runs."""
        if not self._tls.files:
            yield
            return
        task = asyncio.create_task(self._look(), name="tls")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            if _stamps(self._tls.files) != self._seen:
                self.renew()


class _named:  # noqa: N801 - reads as a word of the with statement
    def __init__(self, key: str, path: Path, wanted: str) -> None:
        self._words = f"{key}: {path} cannot be used: ", f"; give {wanted}"

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if isinstance(error, OSError):  # ssl.SSLError is one
            before, after = self._words
            raise ConfigError(f"{before}{error}{after}") from error


def _stamps(files: Iterable[Path]) -> tuple[object, ...]:
    found: list[object] = []
    for path in files:
        with contextlib.suppress(OSError):
            state = path.stat()
            found.append((str(path), state.st_ino, state.st_mtime_ns, state.st_size))
    return tuple(found)


def names(certificate: dict[str, Any] | None) -> frozenset[str]:
    """Whom a verified certificate (``peercert``) names: its common name and its DNS names, in lower case."""
    if not certificate:
        return frozenset()
    subject = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
    others = [value for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS"]
    return frozenset(name.lower() for name in (*subject, *others))
