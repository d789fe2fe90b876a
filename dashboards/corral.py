"""The board of Corral itself: what watches must be watched."""

from dashboards.board import Panels, assemble, new_board
from dashboards.panels import GREEN, NONE, QUARTER, RED, THIRD, YELLOW, Query, lines, number

UID = "corral-self"


def board() -> bytes:
    """The board's JSON."""
    made = new_board(UID, "Corral / Corral itself", "Controller, agents and gateways: what they see, lose and spend.")
    return assemble(
        made,
        (
            ("Does it see and decide?", _sees()),
            ("The controller", _controller()),
            ("The agents", _agents()),
            ("Beyond: managers, webhooks, gateways", _beyond()),
        ),
        (),
    )


def _sees() -> Panels:
    return (
        number(
            "Agents that do not answer",
            "Good: 0. Their nodes go on serving, and faults there are not seen.",
            Query('count(up{job="corral-agent"} == 0) or 0 * count(up{job="corral-agent"})', "agents"),
            "none",
            steps=((None, GREEN), (1, RED)),
        ),
        number(
            "Nodes that do not report",
            "Nodes whose last report is older than a minute. Good: 0.",
            Query(f"count(corral_node_report_age_seconds > 60) {NONE}", "nodes"),
            "none",
            steps=((None, GREEN), (1, RED)),
        ),
        number(
            "Controllers that decide",
            "Good: 1. None: events are kept and agents fence, and nothing is replaced or repaired.",
            Query("sum(corral_leader)", "leaders"),
            "none",
            steps=((None, RED), (1, GREEN), (2, RED)),
        ),
        number(
            "Store",
            "Whether the database takes writes. Good: yes. No: agents keep what they have, and nothing is decided.",
            Query("min(corral_store_up)", "up"),
            "none",
            steps=((None, RED), (1, GREEN)),
            words={"0": ("refuses", RED), "1": ("yes", GREEN)},
        ),
    )


def _controller() -> Panels:
    return (
        lines(
            "Reports a second",
            "Batches of agents by outcome. Good: all taken; sent away ones come again.",
            (Query("sum by (outcome) (rate(corral_ingest_batches_total[$__rate_interval]))", "{{outcome}}"),),
            "none",
            stacked=True,
            width=THIRD,
        ),
        lines(
            "From a report to its answer",
            "It is answered once it is on disk. Good: under 100 ms.",
            tuple(
                Query(
                    f"histogram_quantile({share}, sum by (le) (rate(corral_ingest_seconds_bucket[$__rate_interval])))",
                    f"{share:.0%}",
                )
                for share in (0.5, 0.99)
            ),
            "s",
            width=THIRD,
        ),
        lines(
            "Time of a transaction",
            "Good: under 50 ms. A disk that slows down shows here first.",
            tuple(
                Query(
                    "histogram_quantile("
                    f"{share}, sum by (le) (rate(corral_store_commit_seconds_bucket[$__rate_interval])))",
                    f"{share:.0%}",
                )
                for share in (0.5, 0.99)
            ),
            "s",
            width=THIRD,
        ),
        lines(
            "Failures",
            "Errors of the decision core, transactions that were refused, jobs that failed. Good: none.",
            (
                Query("sum(increase(corral_core_failures_total[$__rate_interval]))", "core"),
                Query("sum(increase(corral_store_failures_total[$__rate_interval]))", "store"),
                Query(
                    'sum by (job) (increase(corral_jobs_total{outcome!="done"}[$__rate_interval])) > 0', "job {{job}}"
                ),
            ),
            "none",
            width=THIRD,
        ),
        lines(
            "Lines decided a second",
            "By kind. Good: it follows what happens; a steady stream without events is a rule that fights itself.",
            (Query("sum by (kind) (rate(corral_lines_total[$__rate_interval]))", "{{kind}}"),),
            "none",
            stacked=True,
            width=THIRD,
        ),
        lines(
            "The lease, and those that follow",
            "Age of the lease and lag of the controllers that follow. Good: under 2 s. Absent with one controller.",
            (
                Query("max(corral_lease_age_seconds)", "lease"),
                Query("max by (instance) (corral_follower_lag_seconds)", "{{instance}} behind"),
            ),
            "s",
            width=THIRD,
        ),
    )


def _agents() -> Panels:
    return (
        lines(
            "Not confirmed",
            "Items in the spools of all agents, and of the fullest. Good: a handful each; growth means that the"
            " controller does not take them.",
            (
                Query("sum(corral_agent_spool_items)", "all"),
                Query("max(corral_agent_spool_items)", "fullest"),
            ),
            "none",
            width=THIRD,
        ),
        lines(
            "Lost",
            "Items dropped from full spools, kernel lines that were overwritten unread. Good: none.",
            (
                Query("sum(increase(corral_agent_spool_dropped_total[$__rate_interval]))", "dropped"),
                Query("sum(increase(corral_agent_kernel_records_lost_total[$__rate_interval]))", "overwritten"),
            ),
            "none",
            width=THIRD,
        ),
        lines(
            "Reads of GPUs that failed",
            "Share by source. Good: none. Partial reads lack something that the board or driver does not tell.",
            (
                Query(
                    'sum by (source) (rate(corral_agent_reads_total{result="failed"}[$__rate_interval]))'
                    " / sum by (source) (rate(corral_agent_reads_total[$__rate_interval]))",
                    "{{source}}",
                ),
            ),
            "percentunit",
            width=THIRD,
        ),
        lines(
            "From an observation to its judgement",
            "With its fence and record, 99 % of all agents. Good: under 50 ms.",
            (
                Query(
                    "histogram_quantile(0.99, sum by (le) (rate(corral_agent_take_seconds_bucket[$__rate_interval])))",
                    "99 %",
                ),
            ),
            "s",
            width=THIRD,
        ),
        lines(
            "Fences",
            "By what became of them. Good: few, and none that expires: that is a controller which did not answer"
            " in time.",
            (Query("sum by (op) (increase(corral_agent_fences_total[$__rate_interval])) > 0", "{{op}}"),),
            "none",
            width=THIRD,
        ),
        lines(
            "Inputs that failed",
            "What agents could not handle, by part. Good: none; the agent's log has the rest.",
            (Query("sum by (part) (increase(corral_agent_failures_total[$__rate_interval])) > 0", "{{part}}"),),
            "none",
            width=THIRD,
        ),
    )


def _beyond() -> Panels:
    return (
        lines(
            "Managers",
            "1 while Slurm, Kubernetes or a hook answers. Good: 1.",
            (Query("corral_manager_up", "{{manager}}"),),
            "none",
            most=1,
            width=THIRD,
        ),
        lines(
            "Notices of webhooks",
            "By outcome. Good: sent.",
            (
                Query(
                    "sum by (webhook, outcome) (increase(corral_webhook_notices_total[$__rate_interval])) > 0",
                    "{{webhook}} {{outcome}}",
                ),
            ),
            "none",
            width=THIRD,
        ),
        lines(
            "Gateways that know their replicas",
            "1 while the controller tells a gateway its replicas; without it the last list is used. Good: 1.",
            (Query("corral_gateway_controller_up", "{{instance}}"),),
            "none",
            most=1,
            width=THIRD,
        ),
        number(
            "Readers of changes",
            "Open streams of the watch. Good: as many as you run pages and tools.",
            Query("sum(corral_watch_readers)", "readers"),
            "none",
            steps=((None, GREEN), (1000, YELLOW)),
            width=QUARTER,
        ),
    )
