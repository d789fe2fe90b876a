"""The gateway's configuration."""

from pathlib import Path

import msgspec

from vocab.errors import ConfigError
from wire.tls import Tls


class GatewayConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``gateway.toml``. ``token_file`` is asked of clients, and shown to the controller unless it has its own."""

    listen: str = "127.0.0.1:7420"
    controller: str = "http://127.0.0.1:7400"
    node: str | None = None  # this machine's name in the fleet; left out, its host name
    state_dir: Path = Path("/var/lib/corral/gateway")
    token_file: Path | None = None
    controller_token_file: Path | None = None  # what the controller is shown; clients never have this one
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_ca: Path | None = None  # the authority of the controller's certificate
    log_json: bool = False
    hold_s: float = 10.0  # how long a request waits while nothing is routable
    drain_s: float = 120.0  # at a stop, how long streams in flight may go on

    def __post_init__(self) -> None:
        if not self.controller.startswith(("http://", "https://")):
            raise ConfigError(f"controller: {self.controller!r} is not a URL, for example http://127.0.0.1:7400")
        if self.hold_s < 0 or self.drain_s < 0:
            raise ConfigError("hold_s and drain_s are seconds, not below 0")
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ConfigError("tls_cert and tls_key are needed together")

    @property
    def tls(self) -> Tls:
        """What the gateway shows, to clients and to the controller, and whom it trusts."""
        return Tls(cert=self.tls_cert, key=self.tls_key, ca=self.tls_ca)
