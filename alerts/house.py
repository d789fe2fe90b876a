"""All groups of rules, and which alert's runbook belongs to a condition. No YAML here: the command line reads this."""

from alerts import corral, fleet, gpu, node, serving
from alerts.alert import Alert

GROUPS = (gpu.GROUP, node.GROUP, serving.GROUP, fleet.GROUP, corral.GROUP)
ALERTS: dict[str, Alert] = {alert.name: alert for group in GROUPS for alert in group.alerts}

_ABOUT = {code: alert for alert in reversed(ALERTS.values()) for code in alert.codes}


def alert_about(code: str) -> Alert:
    """The alert whose runbook tells what to do about an incident or condition of this code.

    Xids and what no alert names lead to the one for a GPU that is faulty or out of service.
    """
    return _ABOUT.get(code, ALERTS["CorralGpuFault"])
