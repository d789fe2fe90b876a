"""What the engine exports: vLLM's names, types, labels and buckets where it has the same thing, and its own.

Dashboards made for vLLM therefore work. The smallest buckets of the latencies between tokens are ours: a small
model on a fast GPU makes a token in less than vLLM's first bucket of 10 ms; a superset keeps dashboards right.
Source of the names: /metrics of a running vLLM 0.32.
"""

from vocab.metrics.row import Kind, Metric

_MODEL = ("model_name", "engine")
CACHE = ("block_size", "num_gpu_blocks", "cache_dtype", "enable_prefix_caching", "kv_cache_size_tokens",
         "kv_cache_memory_bytes", "kv_cache_max_concurrency")  # fmt: skip
_LATENCY_S = (0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0,
              960.0, 1920.0, 7680.0)  # fmt: skip
_FIRST_TOKEN_S = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0,
                  40.0, 80.0, 160.0, 640.0, 2560.0)  # fmt: skip
_TOKEN_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5,
            10.0, 20.0, 40.0, 80.0)  # fmt: skip
_TOKENS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
_ITERATION = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)


def _vllm(name: str, kind: Kind, text: str, *more: str, buckets: tuple[float, ...] = ()) -> Metric:
    return Metric(f"vllm:{name}", kind, text, (*_MODEL, *more), buckets)


def _own(name: str, kind: Kind, text: str, *labels: str, buckets: tuple[float, ...] = ()) -> Metric:
    return Metric(f"corral_engine_{name}", kind, text, labels, buckets)


_VLLM = (
    _vllm("num_requests_running", Kind.GAUGE, "Requests in the batch."),
    _vllm("num_requests_waiting", Kind.GAUGE, "Requests that wait for a place in the batch."),
    _vllm("num_requests_waiting_by_reason", Kind.GAUGE, "The same, by reason; here all wait for capacity.", "reason"),
    _vllm("engine_sleep_state", Kind.GAUGE, "1 on awake: this engine does not sleep.", "sleep_state"),
    _vllm("kv_cache_usage_perc", Kind.GAUGE, "Share of the KV cache in use; 1 means full."),
    _vllm("prefix_cache_queries_total", Kind.COUNTER, "Prompt tokens looked up in the prefix cache."),
    _vllm("prefix_cache_hits_total", Kind.COUNTER, "Prompt tokens found in the prefix cache."),
    _vllm("external_prefix_cache_queries_total", Kind.COUNTER, "Of a cache outside of this process: there is none."),
    _vllm("external_prefix_cache_hits_total", Kind.COUNTER, "Of a cache outside of this process: there is none."),
    _vllm("mm_cache_queries_total", Kind.COUNTER, "Of a cache of images and the like: there is none."),
    _vllm("mm_cache_hits_total", Kind.COUNTER, "Of a cache of images and the like: there is none."),
    _vllm("num_preemptions_total", Kind.COUNTER, "Times a request gave its cache back and began anew."),
    _vllm("prompt_tokens_total", Kind.COUNTER, "Prompt tokens of requests that got a first token."),
    _vllm("prompt_tokens_by_source_total", Kind.COUNTER, "The same, by whether they were computed or found.", "source"),
    _vllm("prompt_tokens_cached_total", Kind.COUNTER, "Prompt tokens found in the prefix cache at admission."),
    _vllm("prompt_tokens_cached_by_source_total", Kind.COUNTER, "The same, by where they were found.", "source"),
    _vllm("estimated_flops_per_gpu_total", Kind.COUNTER, "Operations of all steps, counted from shapes."),
    _vllm("estimated_read_bytes_per_gpu_total", Kind.COUNTER, "Bytes that all steps read, counted from shapes."),
    _vllm("estimated_write_bytes_per_gpu_total", Kind.COUNTER, "Bytes that all steps wrote, counted from shapes."),
    _vllm("spec_decode_num_drafts_total", Kind.COUNTER, "Drafts of tokens to come."),
    _vllm("spec_decode_num_draft_tokens_total", Kind.COUNTER, "Tokens in them."),
    _vllm("spec_decode_num_accepted_tokens_total", Kind.COUNTER, "Tokens in them that were right."),
    _vllm(
        "spec_decode_num_accepted_tokens_per_pos_total", Kind.COUNTER, "The same, by place in the draft.", "position"
    ),
    _vllm("corrupted_requests_total", Kind.COUNTER, "Requests of which some logits were no numbers (NaN)."),
    Metric(
        "vllm:cache_config_info",
        Kind.GAUGE,
        "1: the shape of the KV cache; of vLLM's labels those that mean something here.",
        ("engine", *CACHE),
    ),
    _vllm("generation_tokens_total", Kind.COUNTER, "Tokens generated."),
    _vllm("request_success_total", Kind.COUNTER, "Requests that ended, by how.", "finished_reason"),
    Metric(
        "vllm:admission_rejections_total",
        Kind.COUNTER,
        "Requests refused because of a limit of the queue.",
        ("model_name", "reason"),
    ),
    _vllm("iteration_tokens_total", Kind.HISTOGRAM, "Tokens computed in one step.", buckets=_ITERATION),
    _vllm("time_to_first_token_seconds", Kind.HISTOGRAM, "Arrival to first token.", buckets=_FIRST_TOKEN_S),
    _vllm("inter_token_latency_seconds", Kind.HISTOGRAM, "From one token to the next.", buckets=_TOKEN_S),
    _vllm(
        "request_time_per_output_token_seconds",
        Kind.HISTOGRAM,
        "Mean time from one token to the next, of one request.",
        buckets=_TOKEN_S,
    ),
    _vllm("e2e_request_latency_seconds", Kind.HISTOGRAM, "Arrival to last token.", buckets=_LATENCY_S),
    _vllm("request_queue_time_seconds", Kind.HISTOGRAM, "Arrival to first step.", buckets=_LATENCY_S),
    _vllm("request_inference_time_seconds", Kind.HISTOGRAM, "First step to last token.", buckets=_LATENCY_S),
    _vllm("request_prefill_time_seconds", Kind.HISTOGRAM, "First step to first token.", buckets=_LATENCY_S),
    _vllm("request_decode_time_seconds", Kind.HISTOGRAM, "First token to last token.", buckets=_LATENCY_S),
    _vllm("request_prompt_tokens", Kind.HISTOGRAM, "Prompt tokens of a request.", buckets=_TOKENS),
    _vllm("request_generation_tokens", Kind.HISTOGRAM, "Tokens generated for a request.", buckets=_TOKENS),
    _vllm("request_max_num_generation_tokens", Kind.HISTOGRAM, "The same, of the longest choice.", buckets=_TOKENS),
    _vllm(
        "request_prefill_kv_computed_tokens",
        Kind.HISTOGRAM,
        "Prompt tokens that were computed and not found.",
        buckets=_TOKENS,
    ),
    _vllm(
        "request_params_n", Kind.HISTOGRAM, "Choices of a request; each is counted as one.", buckets=(1, 2, 5, 10, 20)
    ),
    _vllm("request_params_max_tokens", Kind.HISTOGRAM, "Tokens that a request asked for.", buckets=_TOKENS),
    _vllm(
        "request_num_preemptions",
        Kind.HISTOGRAM,
        "Times that one request was preempted.",
        buckets=(1, 2, 3, 4, 5, 10, 20),
    ),
)

_CORRAL = (
    Metric("corral_engine_build_info", Kind.INFO, "Version of this process.", ("version",)),
    _own("replica_info", Kind.INFO, "Which replica this is.", "replica", "model_name", "device"),
    _own("gpu_info", Kind.INFO, "The GPUs that this replica stands for, by UUID.", "replica", "gpu"),
    _own("ready", Kind.GAUGE, "1 while new requests are admitted."),
    _own("state", Kind.GAUGE, "1 on the state that holds: ready, loading, fenced, draining, failed, corrupt.", "state"),
    _own("open_requests", Kind.GAUGE, "Requests whose answer has not been written out."),
    _own("refused_requests_total", Kind.COUNTER, "Requests not admitted, by why.", "code"),
    _own("steps_total", Kind.COUNTER, "Steps computed."),
    _own("step_seconds", Kind.HISTOGRAM, "Time of one step.", buckets=_TOKEN_S),
    _own("step_p999_seconds", Kind.GAUGE, "99.9 % of the last 4,096 steps took less: its own measure of slow."),
    _own(
        "mfu_ratio",
        Kind.GAUGE,
        "Share of the board's 16-bit peak that the latest steps used; absent if unknown.",
        "model_name",
    ),
    _own(
        "mbu_ratio",
        Kind.GAUGE,
        "Share of the board's memory bandwidth that they used; absent if unknown.",
        "model_name",
    ),
    _own(
        "copy_bandwidth_share_ratio", Kind.GAUGE, "Share of the measured copy bandwidth that they used.", "model_name"
    ),
    _own("flops_per_byte_ratio", Kind.GAUGE, "Arithmetic intensity of the latest steps.", "model_name"),
    _own(
        "ridge_flops_per_byte_ratio", Kind.GAUGE, "Intensity above which this board waits for arithmetic.", "model_name"
    ),
    _own("bound_steps_total", Kind.COUNTER, "Steps, by what their floor is: compute, memory or launches.", "bound"),
    _own("measured_copy_bytes_per_second", Kind.GAUGE, "Copy bandwidth at start, reading and writing.", "model_name"),
    _own(
        "measured_flops_per_second",
        Kind.GAUGE,
        "Rate of a square product at start, in the weights' type.",
        "model_name",
    ),
    _own("step_over_floor_ratio", Kind.GAUGE, "Times the floor that the latest steps took (median).", "model_name"),
    _own(
        "step_over_usual_ratio",
        Kind.GAUGE,
        "Times their usual value that the latest steps took (median).",
        "model_name",
    ),
    _own("canary_runs_total", Kind.COUNTER, "Whole runs of the canary, by the outcome that matters most.", "outcome"),
    _own("canary_seconds", Kind.GAUGE, "Time that the last run of the canary took, without its pauses."),
    _own("out_of_memory_total", Kind.COUNTER, "Steps that found no memory and were cut into smaller ones."),
    _own(
        "load_phase_seconds",
        Kind.GAUGE,
        "Time of one phase of it: open, read, place, graph, warm_up, measure, canary.",
        "phase",
    ),
    _own("load_seconds", Kind.GAUGE, "Time that loading the model took."),
)

ENGINE: tuple[Metric, ...] = (*_VLLM, *_CORRAL)
