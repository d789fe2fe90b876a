"""What the facts of a node mean: a list of findings, each with what to do. Pure."""

from collections.abc import Callable, Iterator

from corral.doctor import gpus, node
from corral.doctor.facts import Facts
from corral.doctor.finding import Finding

LOOKS: tuple[Callable[[Facts], Iterator[Finding]], ...] = (
    *(node.configuration, node.unit, gpus.bus, gpus.driver, gpus.kernel_log, gpus.activity, gpus.dcgm, gpus.exporter),
    *(gpus.services, node.programs, node.state, node.clock, node.ports, node.controller, node.hands),
)


def findings(facts: Facts) -> tuple[Finding, ...]:
    """All findings, in the order in which a person would set a node up."""
    return tuple(finding for look in LOOKS for finding in look(facts))
