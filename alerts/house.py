"""All groups of rules. No YAML here: who only wants to know an alert need not read files."""

from alerts import corral, fleet, gpu, node, serving
from alerts.alert import Alert

GROUPS = (gpu.GROUP, node.GROUP, serving.GROUP, fleet.GROUP, corral.GROUP)
ALERTS: dict[str, Alert] = {alert.name: alert for group in GROUPS for alert in group.alerts}
