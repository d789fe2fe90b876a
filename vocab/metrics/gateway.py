"""What the gateway exports. A model name that no deployment has is counted as ``unknown``."""

from vocab.metrics.row import Kind, Metric

# The first token of a busy CPU replica takes seconds, of an idle GPU replica some 20 ms.
_FIRST = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_WHOLE = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
_OF = ("deployment",)

GATEWAY: tuple[Metric, ...] = (
    Metric("corral_gateway_build_info", Kind.INFO, "Version of this process.", ("version",)),
    Metric(
        "corral_gateway_requests_total",
        Kind.COUNTER,
        "Requests answered, by HTTP status as the client saw it (499: it left first).",
        ("deployment", "code"),
    ),
    Metric(
        "corral_gateway_retries_total",
        Kind.COUNTER,
        "Tries that went elsewhere before the first byte: refused, unavailable, lost, silent or error.",
        ("deployment", "reason"),
    ),
    Metric("corral_gateway_ttft_seconds", Kind.HISTOGRAM, "From a request to its first body byte.", _OF, _FIRST),
    Metric("corral_gateway_request_duration_seconds", Kind.HISTOGRAM, "From a request to its end.", _OF, _WHOLE),
    Metric(
        "corral_gateway_in_flight_requests",
        Kind.GAUGE,
        "Requests under way at a replica.",
        ("deployment", "replica"),
    ),
    Metric("corral_gateway_held_requests", Kind.GAUGE, "Requests that wait until something is routable.", _OF),
    Metric("corral_gateway_routable_replicas", Kind.GAUGE, "Replicas that take requests.", _OF),
    Metric("corral_gateway_counted_replicas", Kind.GAUGE, "Replicas that should take requests.", _OF),
    Metric("corral_gateway_panic", Kind.GAUGE, "1 while fewer than half of the replicas are routable.", _OF),
    Metric("corral_gateway_panic_requests_total", Kind.COUNTER, "Tries that went to a fenced replica.", _OF),
    Metric("corral_gateway_streams_broken_total", Kind.COUNTER, "Streams that ended with an error midway.", _OF),
    Metric(
        "corral_gateway_streams_resumed_total",
        Kind.COUNTER,
        "Streams that went on at another replica, by why they left one: lost, silent, stuck, failed or cut_off.",
        ("deployment", "reason"),
    ),
    Metric(
        "corral_gateway_resume_seconds",
        Kind.HISTOGRAM,
        "From the break of a stream to the first byte of the replica that goes on with it.",
        _OF,
        _FIRST,
    ),
    Metric("corral_gateway_controller_up", Kind.GAUGE, "1 while the controller answers with the replica list."),
)
