"""What the facts say of the node: configuration, unit, state folder, clock, network, controller, hands. Pure."""

from collections.abc import Iterator

from corral.doctor.facts import Facts
from corral.doctor.finding import Finding, Verdict

OK, ABSENT, MISSING, WRONG, UNKNOWN = Verdict.OK, Verdict.ABSENT, Verdict.MISSING, Verdict.WRONG, Verdict.UNKNOWN

AGENT = "corral-agent.service"
MEMORY_ONLY = frozenset({"tmpfs", "ramfs", "overlay"})  # gone with the next boot, or with the container
LEAST_BYTES = 256 * 2**20  # spool and recording, twice
MOST_CLOCK_S = 1.0  # events of two nodes are put in order by their clocks


def configuration(facts: Facts) -> Iterator[Finding]:
    """Which configuration, and which level."""
    if facts.config_error:
        yield Finding(
            "agent", "configuration", WRONG, facts.config_error, "correct the file; docs/install.md has all keys"
        )
    elif facts.config is None:
        how = "copy deploy/examples/agent.toml to /etc/corral, or name yours with --config"
        yield Finding("agent", "configuration", MISSING, "no configuration: defaults are looked at", how)
    else:
        yield Finding("agent", "configuration", OK, facts.config)
    if facts.level is not None:
        word = "nothing is done by itself" if facts.level == "observe" else "the most that automation may do here"
        yield Finding("agent", "level", OK, f"{facts.level}: {word}")


def unit(facts: Facts) -> Iterator[Finding]:
    """The agent's own unit."""
    if facts.services_error:
        yield Finding(
            "agent", "services", UNKNOWN, facts.services_error, "on a node without systemd they are yours to watch"
        )
        return
    unit = facts.services.get(AGENT)
    if unit is None:
        how = "copy deploy/systemd/corral-agent.service to /etc/systemd/system (docs/install.md)"
        yield Finding("agent", "unit", MISSING, f"{AGENT} is not installed", how)
    elif not unit.active:
        yield Finding("agent", "unit", WRONG, f"{AGENT} is not active", f"systemctl enable --now {AGENT}")
    else:
        yield Finding("agent", "unit", OK, f"{AGENT} is active")


def programs(facts: Facts) -> Iterator[Finding]:
    """Whether the programs that the configuration names are there."""
    for name, error in facts.programs.items():
        if error is None:
            yield Finding("programs", name, OK, "it is there")
        else:
            how = "correct its path in agent.toml, or install it and make it executable for the agent's user"
            yield Finding("programs", name, WRONG, error, how)


def state(facts: Facts) -> Iterator[Finding]:
    """Whether the state folder keeps what is written."""
    if facts.state_dir is None:
        return
    free = facts.host.get("state_available_bytes")
    if facts.state_writable is None:
        yield Finding(
            "node", "state folder", UNKNOWN, f"{facts.state_dir} does not answer", "is it on a network disk that hangs?"
        )
    elif not facts.state_writable:
        how = "make it, owned by the agent's user; systemd does that by StateDirectory=corral/agent"
        yield Finding("node", "state folder", WRONG, f"{facts.user} may not write {facts.state_dir}", how)
    elif facts.state_filesystem in MEMORY_ONLY:
        found = f"{facts.state_dir} is on {facts.state_filesystem}: holds and events are gone with the next boot"
        yield Finding("node", "state folder", WRONG, found, "put it on a disk, or mount one there")
    elif free is not None and free < LEAST_BYTES:
        yield Finding(
            "node", "state folder", WRONG, f"{free >> 20} MiB are free", "make room: spool and recording need 256 MiB"
        )
    else:
        yield Finding("node", "state folder", OK, f"{facts.state_dir} on {facts.state_filesystem or 'a disk'}")


def clock(facts: Facts) -> Iterator[Finding]:
    """Whether somebody keeps the clock."""
    kept, error = facts.host.get("clock_synchronized"), facts.host.get("clock_max_error_s")
    if kept is None:
        yield Finding("node", "clock", UNKNOWN, "the kernel does not say whether it is kept", "see timedatectl")
    elif not kept:
        how = "run chrony or systemd-timesyncd: events of several nodes are put in order by their clocks"
        yield Finding("node", "clock", MISSING, "nobody keeps it", how)
    elif error is not None and error > MOST_CLOCK_S:
        yield Finding("node", "clock", WRONG, f"it may be off by {error:.1f} s", "see chronyc tracking or timedatectl")
    else:
        yield Finding("node", "clock", OK, "synchronised")


def ports(facts: Facts) -> Iterator[Finding]:
    """Which network ports have a link."""
    if not facts.ports:
        return
    down = sorted(
        name for name, state in facts.ports.items() if state is not None and state.lower() not in {"up", "active"}
    )
    quiet = sorted(name for name, state in facts.ports.items() if state is None)
    if down:
        yield Finding("node", "network ports", WRONG, f"down: {', '.join(down)}", "see ip link, ibstat and the cables")
    else:
        more = f"; without a link since the boot: {', '.join(quiet)} (network_ports names those that must have one)"
        yield Finding("node", "network ports", OK, f"{len(facts.ports) - len(quiet)} up{more if quiet else ''}")


def controller(facts: Facts) -> Iterator[Finding]:
    """Whether the controller takes us."""
    if facts.controller is None:
        return
    error = facts.controller_error or ""
    if error.startswith("tls_"):  # ours, before anybody was asked
        yield Finding("agent", "TLS", WRONG, error, "give PEM files that the agent's user may read")
    elif "certificate" in error.lower() or "x509" in error.lower():
        how = "tls_ca must be the PEM file of the authority that signed the controller's certificate"
        yield Finding("controller", facts.controller, WRONG, error, f"{how}, and the certificate name its host")
    elif facts.controller_error:
        how = "is it running, are controller, token_file and tls_ca right, is the port open?"
        yield Finding("controller", facts.controller, WRONG, facts.controller_error, how)
    else:
        yield Finding("controller", facts.controller, OK, "it answers, and takes our token")


def hands(facts: Facts) -> Iterator[Finding]:
    """Who would reset and reboot, and start replicas as units."""
    if facts.helper:
        yield Finding("repairs", "root helper", OK, "its socket is there")
    elif facts.helper is False:
        how = "install deploy/systemd/corral-roothelper.*: without it a reset or a reboot goes to a person"
        how += ", and replica_manager = systemd starts no replica" if facts.units else ""
        wanted = facts.level == "repair" or facts.units
        yield Finding("repairs", "root helper", MISSING if wanted else ABSENT, "not installed", how if wanted else "")
