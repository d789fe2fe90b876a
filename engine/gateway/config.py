"""The gateway's configuration."""

from pathlib import Path

import msgspec

from vocab.errors import ConfigError


class GatewayConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``gateway.toml``. The token is asked of clients and shown to the controller."""

    listen: str = "127.0.0.1:7420"
    controller: str = "http://127.0.0.1:7400"
    state_dir: Path = Path("/var/lib/corral/gateway")
    token_file: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
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
