"""Alerts about nodes: what Corral does not see there, and what is wrong below its GPUs."""

from alerts.alert import PLACE, Alert, Group, Recording, Severity, conditions, ticket_of_conditions

TICKET = Severity.TICKET

# Nodes without eyes, one series each. In turn: the controller knows the node, and Prometheus has had no answer from its
# agent for 2 m; its agent answers, and not one GPU can be read; it has not reported to the controller for a minute;
# and, for the time that the controller's list is gone, what discovery last knew.
BLIND = """max by (node) (corral_node_info)
  unless on (node) (max by (node) (max_over_time(up{job="corral-agent"}[2m])) == 1)
or
max by (node) (last_over_time(corral_agent_gpus[2m]))
  unless on (node) (max by (node) (max_over_time(corral_gpu_up[2m])) == 1)
or
max by (node) (corral_node_report_age_seconds) > <1m>
or
max by (node) (max_over_time(up{job="corral-agent"}[2m])) == 0"""

GROUP = Group(
    subject="node",
    head="Nodes. An alert of a node that Corral is blind on silences those of its GPUs (alertmanager.yml).",
    rules=(
        Recording(name="corral:node_blind", expr=BLIND),
        Alert(
            name="CorralNodeBlind",
            severity=TICKET,
            expr="corral:node_blind",
            wait="1m",
            keep="2m",
            summary="Corral is blind on {{ $labels.node }}",
            says="Its agent does not answer, does not report, or can read none of its GPUs. Replicas there go on "
            "serving; faults there are not seen. Nothing is held for it. `corral status` says what is known; on the "
            "node: `systemctl status corral-agent`.",
        ),
        ticket_of_conditions(
            "CorralNodeLost",
            ("node_lost",),
            wait="",
            summary="{{ $labels.node }} is lost",
            says="Two observers cannot reach it. Its replicas are started elsewhere where there is room; nothing is "
            "repaired. `corral status` says what is missing now. Power it on, or take it away: it comes back under a "
            "hold until it is validated.",
        ),
        Alert(
            name="CorralGpuMissing",
            severity=TICKET,
            expr="""max by (node) (max_over_time(corral_agent_gpus[6h]))
  - max by (node) (last_over_time(corral_agent_gpus[2m])) > 0""",
            wait="5m",
            keep="10m",
            summary="{{ $value }} GPUs of {{ $labels.node }} are gone",
            says="It listed them within the last six hours. Corral holds what is missing and goes on with the others; "
            "a reboot brings back some. `corral status` names them.",
        ),
        ticket_of_conditions(
            "CorralDriver",
            ("driver_library_mismatch", "driver_not_loaded", "driver_hang", "probe_hung", "stuck_in_kernel"),
            wait="5m",
            summary=f"The driver is broken on {PLACE} ({{{{ $labels.code }}}})",
            says="Most of these end by a reboot, and do not start `nvidia-smi` there: it hangs as well. "
            "`corral status` says what waits for you.",
        ),
        Alert(
            name="CorralSourceDown",
            severity=TICKET,
            expr="max by (node, source) (max_over_time(corral_agent_source_up[2m])) == 0",
            wait="10m",
            keep="5m",
            summary="{{ $labels.source }} on {{ $labels.node }} gives no readings",
            says="Corral sees that node with its other sources alone. The log of its agent says why: "
            "`journalctl -u corral-agent`; `corral doctor` on the node says what it lacks.",
        ),
        ticket_of_conditions(
            "CorralVersionDrift",
            ("version_drift",),
            wait="1h",
            keep="15m",
            summary="{{ $labels.node }} runs another driver or firmware than its pool",
            says="`corral versions` says which. A half-done roll-out is the usual reason, a board that was exchanged "
            "the next.",
        ),
        # The kernel's stamps against the node's own clock, and that clock against the controller's: a report is at
        # most a few seconds on its way.
        Alert(
            name="CorralClockSkew",
            severity=TICKET,
            expr=f"""max by (node) ({conditions("kernel_clock_skew")})
or
abs(max by (node) (last_over_time(corral_node_clock_ahead_seconds[2m]))) > 5""",
            wait="15m",
            keep="5m",
            summary="The clock of {{ $labels.node }} is wrong",
            says="It differs from the controller's, or its kernel's stamps from it: events from there carry wrong "
            "times; deadlines are not touched. Look at chrony or ntpd there, and at the controller's own if all nodes "
            "differ. `corral events` shows what came from there.",
        ),
        ticket_of_conditions(
            "CorralNicDown",
            ("nic_down",),
            wait="5m",
            summary="Network port {{ $labels.device }} of {{ $labels.node }} is down",
            says="Groups over several nodes and loading of models suffer. A cable or transceiver is the usual "
            "cause; `corral events` shows whether it came and went before.",
        ),
        ticket_of_conditions(
            "CorralNicFlapping",
            ("nic_flap",),
            wait="",
            keep="1h",
            summary="Network port {{ $labels.device }} of {{ $labels.node }} goes up and down",
            says="Clean or exchange the transceiver before it stays down. `corral events` shows how often it went.",
        ),
        ticket_of_conditions(
            "CorralHostErrors",
            ("mce", "filesystem_error", "service_flapping"),
            wait="",
            keep="15m",
            summary="{{ $labels.node }} has errors of its own hardware or services ({{ $labels.code }})",
            says="Corral repairs GPUs and not hosts: mend it; `corral drain --node {{ $labels.node }} --reason WHY` "
            "frees it.",
        ),
        ticket_of_conditions(
            "CorralCheckFailed",
            ("check_failed",),
            wait="5m",
            keep="15m",
            summary=f"An active check or plugin found a problem on {PLACE}",
            says="`corral status` names the check and what it said; the check's own next pass ends it.",
        ),
        ticket_of_conditions(
            "CorralBlackHole",
            ("placement_black_hole",),
            wait="",
            summary="{{ $labels.node }} kills whatever is started there",
            says="Corral starts nothing there any more. Find out what its replicas died of: `corral status`, then "
            "`corral events`; `corral incident close ID --reason WHY` ends it.",
        ),
    ),
)
