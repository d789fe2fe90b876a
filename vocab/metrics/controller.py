"""What the controller exports: the fleet as it sees it, and how it does itself."""

from vocab.metrics.row import Kind, Metric

_COMMIT = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)

CONTROLLER: tuple[Metric, ...] = (
    Metric("corral_controller_build_info", Kind.INFO, "Version of this process.", ("version",)),
    Metric("corral_gpus", Kind.GAUGE, "GPUs by the state that is shown for them.", ("state",)),
    Metric(
        "corral_gpu_state",
        Kind.GAUGE,
        "1 for the state that is shown for a GPU now; it stands on while its agent is down.",
        ("node", "gpu", "state"),
    ),
    Metric("corral_nodes", Kind.GAUGE, "Nodes by state.", ("state",)),
    Metric(
        "corral_node_info", Kind.INFO, "A node: whether it is virtual, and its level.", ("node", "virtual", "level")
    ),
    Metric("corral_node_report_age_seconds", Kind.GAUGE, "Seconds since a node's last report.", ("node",)),
    Metric("corral_holds", Kind.GAUGE, "Standing holds by the class of their owner.", ("owner",)),
    Metric(
        "corral_oldest_hold_timestamp_seconds",
        Kind.GAUGE,
        "When the oldest standing hold was placed, by the class of its owner; absent without one.",
        ("owner",),
    ),
    Metric("corral_policy_info", Kind.INFO, "The policy in force: its version.", ("version",)),
    Metric("corral_rule_demoted", Kind.GAUGE, "1 for a rule that has fallen back to shadow by itself.", ("rule",)),
    Metric(
        "corral_rule_shadowed",
        Kind.GAUGE,
        "1 for a rule that is in shadow because it is new or has changed since the policy was adopted.",
        ("rule",),
    ),
    Metric(
        "corral_rule_verdicts",
        Kind.GAUGE,
        "Holds of 28 days, placed or only said, by what people said of them: right, wrong, none.",
        ("rule", "verdict"),
    ),
    Metric(
        "corral_rule_precision_ratio",
        Kind.GAUGE,
        "Share of a rule's judged holds that were right; absent while nobody has judged any.",
        ("rule",),
    ),
    Metric(
        "corral_rule_precision_low_ratio",
        Kind.GAUGE,
        "Lower end of the 95 % interval (Wilson) of corral_rule_precision_ratio.",
        ("rule",),
    ),
    Metric(
        "corral_rule_precision_high_ratio",
        Kind.GAUGE,
        "Upper end of the 95 % interval (Wilson) of corral_rule_precision_ratio.",
        ("rule",),
    ),
    Metric("corral_conditions_open", Kind.GAUGE, "Open conditions by code and severity.", ("code", "severity")),
    Metric("corral_incidents_open", Kind.GAUGE, "Open incidents by severity.", ("severity",)),
    Metric("corral_actions", Kind.GAUGE, "Actions that are not over, by kind and state.", ("of", "state")),
    Metric("corral_replicas_ready", Kind.GAUGE, "Ready replicas of a deployment.", ("deployment",)),
    Metric("corral_replicas_wanted", Kind.GAUGE, "Replicas that a deployment asks for.", ("deployment",)),
    Metric("corral_replicas_floor", Kind.GAUGE, "Ready replicas that no repair goes below.", ("deployment",)),
    Metric("corral_paused", Kind.GAUGE, "1 while harmful automation is paused everywhere."),
    Metric("corral_pauses", Kind.GAUGE, "Standing pauses: of the fleet, pools, nodes, by files on nodes.", ("scope",)),
    Metric("corral_manager_up", Kind.GAUGE, "1 while a manager of others' work answers.", ("manager",)),
    Metric("corral_manager_nodes", Kind.GAUGE, "Nodes that are a manager's own.", ("manager",)),
    Metric("corral_manager_nodes_closed", Kind.GAUGE, "Nodes on which it keeps work off for us.", ("manager",)),
    Metric("corral_manager_nodes_of_others", Kind.GAUGE, "Nodes on which others are at work in it.", ("manager",)),
    Metric(
        "corral_manager_acts_total",
        Kind.COUNTER,
        "What managers and owners were asked to do; failed is tried again.",
        ("manager", "of", "outcome"),
    ),
    Metric("corral_lines_total", Kind.COUNTER, "Decision lines stored, by kind.", ("kind",)),
    Metric("corral_action_moves_total", Kind.COUNTER, "Actions that came to a state.", ("of", "state")),
    Metric("corral_ingest_batches_total", Kind.COUNTER, "Batches of agents, by outcome.", ("outcome",)),
    Metric("corral_ingest_items_total", Kind.COUNTER, "Spool records in batches: stored or repeated.", ("outcome",)),
    Metric("corral_ingest_seconds", Kind.HISTOGRAM, "From a batch's arrival to its answer.", (), _COMMIT),
    Metric("corral_store_up", Kind.GAUGE, "1 while the store takes writes."),
    Metric("corral_store_failures_total", Kind.COUNTER, "Transactions that the store refused."),
    Metric("corral_core_failures_total", Kind.COUNTER, "Errors in the decision core, each after a rebuild."),
    Metric("corral_store_commit_seconds", Kind.HISTOGRAM, "Time of one transaction.", (), _COMMIT),
    Metric("corral_leader", Kind.GAUGE, "1 if this controller decides; of several on one database, one does."),
    Metric(
        "corral_lease_age_seconds",
        Kind.GAUGE,
        "Since whoever decides last renewed its lease; NaN where a single controller needs none.",
    ),
    Metric(
        "corral_follower_lag_seconds",
        Kind.GAUGE,
        "Since a controller that follows last had all that is stored; NaN for the one that decides.",
    ),
    Metric("corral_store_seq", Kind.GAUGE, "The seq of the last change."),
    Metric("corral_watch_readers", Kind.GAUGE, "Open streams of changes."),
    Metric("corral_watch_dropped_total", Kind.COUNTER, "Streams closed because their reader was too slow."),
    Metric(
        "corral_webhook_notices_total",
        Kind.COUNTER,
        "Notices of a webhook: sent, refused by its receiver and dropped, failed and to be sent again.",
        ("webhook", "outcome"),
    ),
    Metric("corral_jobs_total", Kind.COUNTER, "Housekeeping jobs by outcome.", ("job", "outcome")),
)
