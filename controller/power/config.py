"""How the power of nodes is reached: ``[[power]]`` tables of ``controller.toml``, each for a pool or named nodes.

[[power]]
pool = "h100"                             # or nodes = ["gpu-17", "gpu-18"]
means = "redfish"                         # or "ipmitool"
address = "https://{node}-bmc.example"    # of ipmitool: a host's name; {node} is the node's
user = "corral"
password_file = "/etc/corral/bmc.password"
ca_file = "/etc/corral/bmc-ca.pem"        # of Redfish: who signed the BMC's certificate; else the system's
"""

from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

import msgspec

from wire.config import is_loopback

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=500)]


class PowerConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table. ``system``: the path of the Redfish system, where a BMC has several."""

    means: Literal["redfish", "ipmitool"]
    address: Text
    user: Text
    password_file: Text
    pool: str | None = None
    nodes: tuple[str, ...] = ()
    ca_file: str | None = None
    system: str | None = None
    program: Text = "ipmitool"

    def __post_init__(self) -> None:
        if (self.pool is None) == (not self.nodes):
            raise ValueError("power: name a pool or nodes")
        covers = 2 if self.pool is not None else len(self.nodes)
        if covers > 1 and "{node}" not in self.address:
            raise ValueError(f"power: address = {self.address!r} is one BMC for several nodes: put {{node}} into it")
        if self.means == "redfish":
            self._check_url()
        elif "/" in self.address or self.address.startswith("-"):
            raise ValueError(f"power: address = {self.address!r}: ipmitool takes a host's name")

    def _check_url(self) -> None:
        parts = urlsplit(self.address.replace("{node}", "node"))
        local = parts.hostname is not None and is_loopback(parts.hostname)
        if parts.hostname is None or not (parts.scheme == "https" or (parts.scheme == "http" and local)):
            raise ValueError(f"power: address = {self.address!r} must be https://…: it is sent a password")

    @property
    def password_path(self) -> Path:
        """Where the password lies; its first line counts."""
        return Path(self.password_file)

    def address_of(self, node: str) -> str:
        """The address of a node's BMC."""
        return self.address.replace("{node}", node)

    def covered(self, pools: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
        """The nodes that it is for."""
        return self.nodes if self.pool is None else pools.get(self.pool, ())
