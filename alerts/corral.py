"""Alerts about Corral itself: what it cannot see must never look healthy."""

from alerts.alert import PLACE, Alert, Group, Page, Severity, ticket_of_conditions

PAGE, TICKET, INFO = Severity.PAGE, Severity.TICKET, Severity.INFO
WATCHED = 'job=~"corral-controller|corral-gateway"'


def _grew(metric: str, window: str = "15m", by: str = "node") -> str:
    return f"sum by ({by}) (increase({metric}[{window}])) > 0"


GROUP = Group(
    subject="corral",
    head="Corral itself: what it cannot see must never look healthy.",
    rules=(
        # GPUs that the controller counts as good and nobody can read; the gateway and the controller, of which none
        # answers, which is also so when it is not even in the list.
        Alert(
            name="CorralTargetDown",
            severity=PAGE,
            expr=f"""(
  sum(corral_gpus{{state=~"healthy|degraded"}})
    > (count(max by (gpu) (max_over_time(corral_gpu_up[2m])) == 1) or vector(0))
  unless on () corral:node_blind
)
or
max by (job) (up{{{WATCHED}}}) == 0
or
absent(up{{job="corral-controller"}})""",
            wait="1m",
            summary="{{ if $labels.job }}{{ $labels.job }} does not answer"
            "{{ else }}GPUs counted as healthy have no readings{{ end }}",
            says=Page(
                users="{{ if eq $labels.job `corral-gateway` }}requests through this gateway fail."
                "{{ else }}nothing: replicas and gateway go on.{{ end }}",
                done="{{ if $labels.job }}systemd starts it again each second; without the controller agents still "
                "fence, and nothing is replaced.{{ else }}nothing: it counts {{ $value }} GPUs as good, and fewer than "
                "that answer Prometheus.{{ end }}",
                waits="{{ if $labels.job }}the process: its log says why it cannot start."
                "{{ else }}whoever compares Prometheus' targets with `corral status`.{{ end }}",
                command="{{ if $labels.job }}systemctl status {{ $labels.job }}{{ else }}corral status{{ end }}",
                sleep="{{ if eq $labels.job `corral-gateway` }}not at all.{{ else }}an hour; faults are fenced, and "
                "nothing is replaced.{{ end }}",
            ),
        ),
        Alert(
            name="CorralInstanceDown",
            severity=TICKET,
            expr=f"up{{{WATCHED}}} == 0\nunless on (job) max by (job) (up{{{WATCHED}}}) == 0",
            wait="5m",
            keep="2m",
            summary="One {{ $labels.job }} of several does not answer: {{ $labels.instance }}",
            says="The others do its work; one more is a page. There: `systemctl status {{ $labels.job }}`. "
            "`corral status` shows that the fleet is led.",
        ),
        Alert(
            name="CorralNoLeader",
            severity=PAGE,
            expr='max(last_over_time(corral_leader[1m])) == 0 and max(up{job="corral-controller"}) == 1',
            wait="2m",
            keep="1m",
            summary="Controllers answer, and none of them decides",
            says=Page(
                users="nothing yet: replicas and gateway go on.",
                done="agents fence what is certain by themselves; nothing is held, drained, repaired or replaced.",
                waits="a lease in the database that one of them can take.",
                command="corral status",
                sleep="an hour: the next lost replica is not replaced.",
            ),
        ),
        Alert(
            name="CorralTwoLeaders",
            severity=PAGE,
            expr="sum(corral_leader) > 1",
            wait="1m",
            keep="1m",
            summary="{{ $value }} controllers decide at once",
            says=Page(
                users="nothing yet; drains and repairs may be ordered twice.",
                done="agents obey the younger one alone: each order carries the number of its lease.",
                waits="you: they use different databases, or the database gave one lease to two.",
                command='corral pause --reason "two leaders"',
                sleep="until the morning once it is paused.",
            ),
        ),
        Alert(
            name="CorralStoreDown",
            severity=PAGE,
            expr="max by (instance) (last_over_time(corral_store_up[1m])) == 0",
            wait="5m",
            keep="2m",
            summary="The controller's database takes no writes",
            says=Page(
                users="nothing yet: replicas and gateway go on.",
                done="it decides nothing that it cannot write down; agents keep their events and fence by themselves.",
                waits="room on the disk, or a database that answers.",
                command="journalctl -u corral-controller -n 50",
                sleep="an hour: agents keep a day of events, but nothing is replaced.",
            ),
        ),
        Alert(
            name="CorralCoreFails",
            severity=PAGE,
            expr="sum by (instance) (increase(corral_core_failures_total[15m])) > 3",
            keep="15m",
            summary="The controller's decisions fail again and again",
            says=Page(
                users="nothing yet: replicas and gateway go on.",
                done="it rebuilt its state after each error and took the next input.",
                waits="another version: this is a defect of Corral's.",
                command="journalctl -u corral-controller -n 50",
                sleep="an hour; roll back if a roll-out came just before.",
            ),
        ),
        Alert(
            name="CorralFollowerBehind",
            severity=TICKET,
            expr="max by (instance) (corral_follower_lag_seconds) > <1m>",
            wait="5m",
            keep="2m",
            summary="The controller {{ $labels.instance }} follows {{ $value | humanizeDuration }} behind",
            says="If it must take over it has to catch up first. Look at its log and its way to the database; "
            "`corral status` asks whoever answers.",
        ),
        Alert(
            name="CorralUplinkDown",
            severity=TICKET,
            expr="max by (node) (max_over_time(corral_agent_uplink_up[2m])) == 0",
            wait="5m",
            keep="2m",
            summary="The agent of {{ $labels.node }} cannot reach the controller",
            says="It fences by itself and keeps its events for later. Token, certificate or network: the agent's log "
            "says which. `corral status` shows the node as unknown.",
        ),
        Alert(
            name="CorralSpoolGrowing",
            severity=TICKET,
            expr="max by (node) (min_over_time(corral_agent_spool_items[15m])) > 1000",
            wait="5m",
            keep="5m",
            summary="{{ $labels.node }} keeps {{ $value }} items that the controller has not confirmed",
            says="It sends more slowly than it sees, or not at all; when the spool is full the least severe go first. "
            "`corral events` shows what that node sends.",
        ),
        Alert(
            name="CorralSpoolDropped",
            severity=TICKET,
            expr=_grew("corral_agent_spool_dropped_total"),
            keep="15m",
            summary="{{ $labels.node }} has dropped {{ $value | humanize }} items: its spool is full",
            says="Events are lost, the least severe first. Bring the controller back, or give the spool more room; "
            "`corral record` on that node has what it saw of late.",
        ),
        ticket_of_conditions(
            "CorralProbeUnknown",
            ("monitor_unreachable", "probe_slow", "probe_degraded", "probe_incomplete", "probe_permission"),
            wait="15m",
            summary=f"A probe of {PLACE} does not know ({{{{ $labels.code }}}})",
            says="What it would have seen is unknown, which is not healthy. `corral doctor` on the node says what it "
            "lacks.",
        ),
        Alert(
            name="CorralReadingsStale",
            severity=TICKET,
            expr="time() - max by (node) (corral_gpu_last_read_timestamp_seconds) > <5m>\n"
            'and on (node) max by (node) (up{job="corral-agent"}) == 1',
            wait="5m",
            keep="5m",
            summary="The readings of {{ $labels.node }} are {{ $value | humanizeDuration }} old",
            says="The agent answers and does not read, or its clock is behind. `corral status` shows its GPUs as "
            "not fresh; the agent's log says why.",
        ),
        Alert(
            name="CorralReadsSlow",
            severity=TICKET,
            expr="max by (node, source) (min_over_time(corral_agent_read_seconds[5m])) > 5",
            wait="5m",
            keep="10m",
            summary="Reading a GPU of {{ $labels.node }} by {{ $labels.source }} takes {{ $value | humanizeDuration }}",
            says="The driver is busy or begins to hang. `corral status` shows whether a call is overdue; start no "
            "`nvidia-smi` beside it.",
        ),
        Alert(
            name="CorralReadsFail",
            severity=TICKET,
            expr='sum by (node, source) (rate(corral_agent_reads_total{result="failed"}[15m]))\n'
            "> 0.5 * sum by (node, source) (rate(corral_agent_reads_total[15m]))",
            wait="10m",
            keep="10m",
            summary="More than half of the reads of {{ $labels.node }} by {{ $labels.source }} fail",
            says="`corral status` shows the GPUs that cannot be read and the driver's own word for it.",
        ),
        Alert(
            name="CorralKernelRecordsLost",
            severity=TICKET,
            expr=_grew("corral_agent_kernel_records_lost_total"),
            keep="15m",
            summary="{{ $labels.node }} lost {{ $value | humanize }} kernel records unread",
            says="An Xid may be among them. A storm of records, or a ring that is too small (`log_buf_len`); "
            "`corral events` shows what came before.",
        ),
        Alert(
            name="CorralAgentFails",
            severity=TICKET,
            expr=_grew("corral_agent_failures_total", by="node, part"),
            keep="15m",
            summary="The agent of {{ $labels.node }} fails in {{ $labels.part }}",
            says="It goes on, and what it could not handle is in its log: `journalctl -u corral-agent -n 50`. Send "
            "that to us with `corral record`.",
        ),
        Alert(
            name="CorralIngestRefused",
            severity=TICKET,
            expr='sum by (outcome) (increase(corral_ingest_batches_total{outcome=~"malformed|refused"}[15m])) > 5',
            wait="5m",
            keep="15m",
            summary="The controller turns agents' batches away ({{ $labels.outcome }})",
            says="Malformed: an agent of another version. Refused: a wrong token or name. The controller's log names "
            "the node; `corral token list` shows who may speak for it.",
        ),
        # A batch or order came in at another controller, and could not be read or not be thought about.
        Alert(
            name="CorralInboxFailed",
            severity=TICKET,
            expr="max(last_over_time(corral_inbox_failed[2m])) > 0",
            wait="5m",
            keep="2m",
            summary="{{ $value }} batches or orders were put aside, and nothing follows from them",
            says="They came in at another controller, and could not be read or not be thought about, as while "
            "controllers of two versions run. The log of the one that decides says why; the table `inbox` keeps them "
            "for `keep_days`.",
        ),
        Alert(
            name="CorralJobsFail",
            severity=TICKET,
            expr='sum(increase(corral_jobs_total{outcome=~"failed|missed"}[6h])) > 0',
            keep="1h",
            summary="A housekeeping job of the controller fails",
            says="Old rows are not forgotten, bundles or backups not written: `journalctl -u corral-controller` names "
            "the job. `corral backup` makes a backup meanwhile.",
        ),
        # A quarantine's bundle is tried again each half minute: three times is no hiccup of the disk.
        Alert(
            name="CorralBundlesFail",
            severity=TICKET,
            expr='sum(increase(corral_bundles_total{outcome="failed"}[15m])) > 2',
            keep="15m",
            summary="Evidence of quarantines cannot be written to the controller's disk",
            says="Bundles are packed again each half minute until it can. Make room below `state_dir`; "
            "`corral bundle --list` shows those that are kept, the controller's log says what the disk said.",
        ),
        Alert(
            name="CorralWebhookFails",
            severity=TICKET,
            expr=_grew('corral_webhook_notices_total{outcome=~"refused|failed"}', "30m", by="webhook, outcome"),
            wait="30m",
            keep="15m",
            summary="The webhook {{ $labels.webhook }} does not take what it is sent ({{ $labels.outcome }})",
            says="Refused notices are dropped, failed ones sent again. The controller's log has the answer; "
            "`corral incident list` has what it should have said.",
        ),
        Alert(
            name="CorralVersionsDiffer",
            severity=TICKET,
            expr="count(count by (version) (\n  corral_agent_build_info or corral_controller_build_info or "
            "corral_gateway_build_info\n)) > 1",
            wait="1d",
            keep="15m",
            summary="{{ $value }} versions of Corral have run for a day",
            says="One minor version apart works in both directions, more does not. Finish the roll-out; the Versions "
            "board and `corral status` show who runs what.",
        ),
        # Always: whoever is told of it by the hour notices when Prometheus, Alertmanager or the way between is dead.
        Alert(
            name="CorralWatchdog",
            severity=INFO,
            expr="vector(1)",
            summary="The way from Prometheus to you works",
            says="It always fires. Something outside of this house must miss it: docs/alerts.md. `corral status` has "
            "nothing to do with it.",
        ),
    ),
)
