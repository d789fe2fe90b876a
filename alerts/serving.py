"""Alerts about what users feel: deployments below their floor, errors against the objective, queues and latency."""

from alerts.alert import Alert, Group, Page, Recording, Severity, ticket_of_conditions

PAGE, TICKET, INFO = Severity.PAGE, Severity.TICKET, Severity.INFO

OBJECTIVE = 0.995  # share of requests that must not fail on our side, over 30 days
WINDOWS = ("5m", "30m", "1h", "2h", "6h", "1d", "3d")
FEW = 100  # fewer requests than this say nothing about a share of 0.5 %
PATIENCE_S = "10.0"  # a first token after more than this is late; a bucket of corral_gateway_ttft_seconds


def _ratio(window: str) -> Recording:
    requests = f"sum by (deployment) (rate(corral_gateway_requests_total[{window}]))"
    errors = f'sum by (deployment) (rate(corral_gateway_requests_total{{code=~"5.."}}[{window}]))'
    return Recording(name=f"corral:request_errors:ratio_{window}", expr=f"{errors}\n/\n{requests}")


def _burns(times: float, long: str, short: str) -> str:
    """The budget of 30 days is used up ``times`` as fast as it may be, over both windows."""
    limit = round(times * (1 - OBJECTIVE), 4)
    return (
        f"(\n  corral:request_errors:ratio_{long} > {limit}\n  and\n  corral:request_errors:ratio_{short} > {limit}\n"
        f"  and\n  sum by (deployment) (increase(corral_gateway_requests_total[{long}])) > {FEW}\n)"
    )


def _deployment(name: str, window: str = "2m") -> str:
    return f"max by (deployment) (last_over_time({name}[{window}]))"


READY, WANTED, FLOOR = (_deployment(f"corral_replicas_{word}") for word in ("ready", "wanted", "floor"))
LATE = f"""1 - (
  sum by (deployment) (rate(corral_gateway_ttft_seconds_bucket{{le="{PATIENCE_S}"}}[30m]))
  /
  sum by (deployment) (rate(corral_gateway_ttft_seconds_count[30m]))
) > 0.05"""

GROUP = Group(
    subject="serving",
    head="What users feel. Series come from the controller and the gateway.",
    rules=(
        *(_ratio(window) for window in WINDOWS),
        Alert(
            name="CorralDeploymentDown",
            severity=PAGE,
            expr=f"{READY} == 0\nand\n{WANTED} > 0",
            wait="3m",
            keep="2m",
            summary="No replica of {{ $labels.deployment }} serves",
            says=Page(
                users="every request to {{ $labels.deployment }} fails or waits.",
                done="it restarts in place what died and starts replacements where GPUs are free.",
                waits="a GPU that may take a replica, or an engine that comes up.",
                command="corral status",
                sleep="not at all.",
            ),
        ),
        Alert(
            name="CorralFloorInDanger",
            severity=PAGE,
            expr=f"{READY} < {FLOOR}",
            wait="2m",
            keep="2m",
            summary="{{ $labels.deployment }} is below its floor: {{ $value }} replicas are ready",
            says=Page(
                users="longer waits at {{ $labels.deployment }}; errors if one more replica goes.",
                done="it repairs nothing more that would take a replica of it, and starts replacements where GPUs are "
                "free; it has had ten minutes for that.",
                waits="a free GPU, or a replica that comes up.",
                command="corral status",
                sleep="until load rises or one more replica fails; look within half an hour.",
            ),
        ),
        # What Corral handles is no page: Alertmanager keeps the one above back while a replacement has been starting
        # for less than ten minutes.
        Alert(
            name="CorralReplacing",
            severity=INFO,
            expr="max by (deployment) (corral_replicas_starting) > 0\nunless\n"
            "max by (deployment) (min_over_time(corral_replicas_starting[10m])) > 0",
            keep="30s",
            summary="A replica of {{ $labels.deployment }} starts",
            says="Corral is at work: no page for the deployment's floor meanwhile. `corral status` shows how "
            "far it is.",
        ),
        Alert(
            name="CorralAtFloor",
            severity=TICKET,
            expr=f"{READY} == {FLOOR}\nand\n{READY} < {WANTED}",
            wait="15m",
            keep="5m",
            summary="{{ $labels.deployment }} has no replica to spare",
            says="It is at its floor: repairs that would take one of its replicas wait, and the next failure is below "
            "it. `corral status` says why it is short; free or repair a GPU.",
        ),
        Alert(
            name="CorralReplicasShort",
            severity=TICKET,
            expr=f"{READY} < {WANTED}",
            wait="30m",
            keep="5m",
            summary="{{ $labels.deployment }} has {{ $value }} ready replicas, fewer than it wants",
            says="For half an hour, so it is not just a start. `corral status` says why it is short.",
        ),
        ticket_of_conditions(
            "CorralReplicaWedged",
            ("replica_stalled", "collective_timeout"),
            wait="5m",
            summary="Replica {{ $labels.replica }} stands still with work ({{ $labels.code }})",
            says="Corral has fenced it and restarts it; that has not helped for five minutes. `corral status` shows "
            "its GPU, `corral explain GPU` says what was tried.",
        ),
        ticket_of_conditions(
            "CorralCrashLoop",
            ("crash_loop",),
            wait="",
            keep="15m",
            summary="Replica {{ $labels.replica }} dies again and again",
            says="Corral has given up restarting it. `corral status` shows where; the end of the replica's log says "
            "why: a model, a memory setting, or the GPU.",
        ),
        ticket_of_conditions(
            "CorralReplicaUnwell",
            ("replica_unhealthy", "replica_wrong_gpu", "replica_failed_cleanup", "container_device_access_lost"),
            wait="10m",
            summary="Replica {{ $labels.replica }} is not as it should be ({{ $labels.code }})",
            says="`corral status` shows its GPU; `corral explain GPU` tells the evidence and what Corral tries.",
        ),
        # The windows and factors are those of the SRE workbook: 2 % of the month's budget in an hour, 5 % in six.
        Alert(
            name="CorralSloBurnFast",
            severity=PAGE,
            expr=f"{_burns(14.4, '1h', '5m')}\nor\n{_burns(6, '6h', '30m')}",
            wait="2m",
            keep="5m",
            summary="{{ $labels.deployment }} fails {{ $value | humanizePercentage }} of its requests",
            says=Page(
                users="errors from {{ $labels.deployment }}; its error budget of a month is gone within days or hours.",
                done="the gateway tries another replica before the first byte; replicas that fail their users are "
                "fenced.",
                waits="you: that did not end it, so it is load, a bad model or version, or many GPUs at once.",
                command="corral status",
                sleep="not at all while the share rises; two hours at 3 %.",
            ),
        ),
        Alert(
            name="CorralSloBurnSlow",
            severity=TICKET,
            expr=f"{_burns(3, '1d', '2h')}\nor\n{_burns(1, '3d', '6h')}",
            wait="15m",
            keep="30m",
            summary="{{ $labels.deployment }} uses up its error budget",
            says="It fails {{ $value | humanizePercentage }} of its requests for a day or longer: too few to feel, too "
            "many for the month. `corral incident list --all` and the Serving board show when.",
        ),
        Alert(
            name="CorralKvSaturated",
            severity=TICKET,
            expr=f"{_deployment('corral_deployment_kv_ratio')} > 0.95\nand\n"
            f"{_deployment('corral_deployment_requests_waiting')} > 0",
            wait="10m",
            keep="10m",
            summary="The KV cache of {{ $labels.deployment }} is full and requests wait",
            says="More replicas, or shorter contexts: `corral plan` says how many requests fit at once. `corral "
            "status` shows whether a replica is missing.",
        ),
        Alert(
            name="CorralQueueing",
            severity=TICKET,
            expr="max by (deployment) (min_over_time(corral_deployment_requests_waiting[15m])) > 10\nand\n"
            f"{_deployment('corral_deployment_requests_waiting')} > 2 * "
            f"{_deployment('corral_deployment_requests_running')}",
            wait="5m",
            keep="10m",
            summary="{{ $value }} requests have waited at {{ $labels.deployment }} for 15 minutes",
            says="Its queue does not empty: too few replicas for the load, or one that takes none. `corral status` "
            "says which.",
        ),
        Alert(
            name="CorralSlowFirstToken",
            severity=TICKET,
            expr=LATE,
            wait="15m",
            keep="15m",
            summary="{{ $value | humanizePercentage }} of requests to {{ $labels.deployment }} wait over 10 s for a "
            "first token",
            says="See whether they queue (more replicas) or prefill is slow (a throttled GPU): the Serving board, and "
            "`corral status`.",
        ),
        Alert(
            name="CorralEngineSlow",
            severity=TICKET,
            expr="max by (node, replica, deployment) (last_over_time(corral_engine_step_over_usual_ratio[2m])) > 1.5",
            wait="15m",
            keep="15m",
            summary="Replica {{ $labels.replica }} on {{ $labels.node }} takes {{ $value }} times its usual step",
            says="Its GPU is throttled, shared or ill. `corral status` shows which GPU, `corral explain GPU` why.",
        ),
        Alert(
            name="CorralGatewayPanic",
            severity=TICKET,
            expr=f"{_deployment('corral_gateway_panic')} > 0",
            wait="1m",
            keep="5m",
            summary="The gateway sends requests of {{ $labels.deployment }} to fenced replicas too",
            says="Fewer than half of its replicas are routable: a slow answer is better than none. `corral status` "
            "says what is wrong with the others.",
        ),
        Alert(
            name="CorralStreamsBroken",
            severity=TICKET,
            expr="sum by (deployment) (increase(corral_gateway_streams_broken_total[15m])) > 10",
            keep="15m",
            summary="{{ $value | humanize }} answers of {{ $labels.deployment }} broke off midway",
            says="Replicas were lost while they answered. `corral incident list --all` shows which and why.",
        ),
        Alert(
            name="CorralGpusStranded",
            severity=TICKET,
            expr=f"{_deployment('corral_gpus_stranded')} > 0",
            wait="1h",
            keep="5m",
            summary="{{ $value }} sound GPUs of {{ $labels.deployment }} stand idle for another member's fault",
            says="Their group cannot run and has no room elsewhere. `corral status` says what it waits for.",
        ),
    ),
)
