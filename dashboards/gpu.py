"""The GPU board: is this GPU working, with what, against which limits, and what went wrong.

Its first row is the utilization trap made visible. Utilization is the share of time in which *any* kernel
ran, so one small kernel after another reads 100 %. SM activity and DRAM activity say how much of the chip
and of its memory bandwidth these kernels used; the engine's batch says why.
"""

from dashboards.board import INCIDENT, Panels, assemble, label_variable, new_board
from dashboards.panels import BLUE, GREEN, HALF, RED, SHORT, THIRD, WIDE, YELLOW, Query, lines, number, rows, states
from dashboards.plots import bars
from dashboards.recorded import new_xids

UID = "corral-gpu"
GPU = '{node="$node",gpu="$gpu"}'  # series of this GPU; the node comes from discovery
HERE = f"and on (node, replica) corral_engine_gpu_info{GPU}"  # engine series of the replicas on this GPU
REPLICA = "{{replica}} {{model_name}}"
SMALL = 4  # columns: four numbers beside the word


def board() -> bytes:
    """The board's JSON."""
    made = (
        new_board(UID, "Corral / GPU", "One GPU: what it does, what it is allowed, what went wrong.")
        .with_variable(label_variable("node", "Node", "label_values(corral_gpu_info, node)"))
        .with_variable(label_variable("gpu", "GPU", 'label_values(corral_gpu_info{node="$node"}, gpu)'))
    )
    return assemble(
        made,
        (
            ("Can it be used?", _standing()),
            ("Is it working? Utilization beside what the chip really does", _truth()),
            ("What its replicas give it to do", _work()),
            ("What limits it", _limits()),
            ("What went wrong", _faults()),
        ),
        (INCIDENT,),
    )


def _standing() -> Panels:
    return (
        number(
            "What it does with its time",
            "One word, and the share of the roof that binds it, or of its time. Good for a serving GPU: memory-bound."
            " Hung and throttled are faults; launch-bound and starved are capacity that is paid for and not used;"
            " docs/utilization.md says what each needs.",
            Query(
                f"corral_gpu_activity{GPU} * on (gpu) group_left () corral_gpu_activity_ratio{GPU}", "{{doing}} {{by}}"
            ),
            "percentunit",
            steps=((None, BLUE),),
            width=THIRD,
            named=True,
        ),
        number(
            "Answers",
            "Whether the agent's last read of this GPU worked. Good: yes. No: the driver gave an error or the"
            " readings are too old, so everything else on this board is history. *No reading* means that the"
            " agent itself is not scraped: unknown, which is not healthy.",
            Query(f"corral_gpu_up{GPU}", "answers"),
            "none",
            steps=((None, RED), (1, GREEN)),
            words={"0": ("no", RED), "1": ("yes", GREEN)},
            width=SMALL,
        ),
        number(
            "Fenced by its agent",
            "Good: no. Fenced means that the agent saw a fault which is certain, and that replicas on this GPU admit no"
            " new work until the controller's hold replaces the fence, or it expires after 120 s.",
            Query(f"corral_gpu_fenced{GPU}", "fenced"),
            "none",
            steps=((None, GREEN), (1, RED)),
            words={"0": ("no", GREEN), "1": ("fenced", RED)},
            width=SMALL,
        ),
        number(
            "Holds",
            "Reasons why this GPU takes no new work. Good: 0. Each has an owner, and lifting one never lifts another's:"
            " `corral explain GPU` names them.",
            Query(f"corral_gpu_held{GPU}", "holds"),
            "none",
            steps=((None, GREEN), (1, YELLOW)),
            width=SMALL,
        ),
        number(
            "Xid errors, 24 h",
            "Errors of this GPU that the driver reported to the kernel log; injected ones are not counted. Good: 0."
            " The panel at the bottom tells the codes apart: some (13, 31, 43) are a program's own mistake.",
            Query(f"increase(corral_gpu_xids_total{GPU}[24h])", "errors"),
            "none",
            steps=((None, GREEN), (0.5, RED)),
            width=SMALL,
        ),
    )


def _truth() -> Panels:
    return (
        states(
            "What it does, in one word",
            "Good for a serving GPU: memory-bound. Launch-bound and starved GPUs are paid for and not used; hung and"
            " throttled ones are broken, whatever utilization says. Nothing: its counters do not say.",
            Query(f"corral_gpu_activity{GPU}", "{{doing}} {{by}}"),
            {"memory-bound|compute-bound": GREEN, "launch-bound|starved": YELLOW, "hung|throttled": RED},
            width=HALF,
            height=SHORT,
        ),
        states(
            "Its state, as the controller shows it",
            "Good: healthy, all the time. What stands between is a fault's way through its repair.",
            Query(f"corral_gpu_state{GPU} == 1", "{{state}}"),
            {"healthy": GREEN, "degraded|cordoned|probation": YELLOW, "failed|lost|quarantined|unknown|removed": RED},
            width=HALF,
            height=SHORT,
        ),
        lines(
            "Utilization, SM activity, DRAM activity",
            "Good for a serving GPU: SM or DRAM activity high together with utilization. **Utilization near 100 % with"
            " both low is not a busy GPU**: it runs kernels back to back that leave it empty (launch-bound, or a batch"
            " that is too small). DRAM activity high with SM activity low is decoding: memory-bound, and a larger batch"
            " is nearly free. SM and tensor activity high is prefill or training: compute-bound. Utilization high with"
            " activity and power both at idle level is a contradiction: a hang, or a counter that lies.",
            (
                Query(f"corral_gpu_utilization_ratio{GPU}", "utilization (any kernel ran)"),
                Query(f"corral_gpu_sm_active_ratio{GPU}", "SM activity"),
                Query(f"corral_gpu_dram_active_ratio{GPU}", "DRAM activity"),
                Query(f"corral_gpu_tensor_active_ratio{GPU}", "tensor activity"),
                Query(f"corral_gpu_sm_occupancy_ratio{GPU}", "occupancy"),
            ),
            "percentunit",
            width=WIDE,
            height=10,
            most=1,
        ),
        lines(
            "What its engine makes of it",
            "Shares of the board's arithmetic (MFU) and of its memory bandwidth (MBU) that the engine's latest steps"
            " used, and of the bandwidth that it measured by copying at its start. Good while it answers: one of them"
            " over 50 %. All low under high utilization: the engine keeps the GPU waiting.",
            (
                Query(f"corral_engine_mfu_ratio {HERE}", "MFU {{replica}}"),
                Query(f"corral_engine_mbu_ratio {HERE}", "MBU {{replica}}"),
                Query(f"corral_engine_copy_bandwidth_share_ratio {HERE}", "of copy bandwidth {{replica}}"),
            ),
            "percentunit",
            most=1,
            width=THIRD,
        ),
        lines(
            "Utilization without work",
            "Utilization less the larger of SM and DRAM activity: time in which the GPU counted as busy and did little."
            " Good: under 30 %. Steadily over 60 % means capacity that is paid for and not used: look at the batch"
            " below, at CPU time of the engine, at small kernels.",
            (
                Query(
                    f"clamp_min(corral_gpu_utilization_ratio{GPU} -"
                    f" (corral_gpu_sm_active_ratio{GPU} > corral_gpu_dram_active_ratio{GPU}"
                    f" or corral_gpu_dram_active_ratio{GPU}), 0)",
                    "busy without work",
                ),
            ),
            "percentunit",
            most=1,
            width=THIRD,
        ),
        lines(
            "Power",
            "Power tells the truth when counters do not: an H100 that works hard draws several hundred watts, an idle"
            " one about 70. Good: it follows SM and DRAM activity. At the limit (dashed) the clock falls: normal under"
            " full load, and the reason why more load gives less.",
            (
                Query(f"corral_gpu_power_watts{GPU}", "power"),
                Query(f"corral_gpu_power_limit_watts{GPU}", "limit", dashed=True),
            ),
            "watt",
            width=THIRD,
        ),
    )


def _work() -> Panels:
    return (
        lines(
            "Batch: requests that run",
            "Requests in the engine's batch, by replica on this GPU. Good: enough of them that DRAM activity is put to"
            " use. One or two with a queue beside them means that the engine holds back (KV cache full, or a limit).",
            (Query(f"vllm:num_requests_running {HERE}", REPLICA),),
            "none",
            width=THIRD,
        ),
        lines(
            "Queue: requests that wait",
            "Good: 0, with short peaks. A queue that stands while the batch does not move is a wedged engine; a queue"
            " that stands beside a full KV cache is a replica too few.",
            (Query(f"vllm:num_requests_waiting {HERE}", REPLICA),),
            "none",
            width=THIRD,
        ),
        lines(
            "KV cache in use",
            "Good: under 90 %. At 100 % requests are put back into the queue and computed again.",
            (Query(f"vllm:kv_cache_usage_perc {HERE}", REPLICA),),
            "percentunit",
            width=THIRD,
            most=1,
        ),
        lines(
            "Tokens made",
            "Output tokens a second. The only panel of this board that users feel. Good: steady for a steady load; a"
            " fall while utilization stays is the trap of the first row.",
            (Query(f"rate(vllm:generation_tokens_total[$__rate_interval]) {HERE}", REPLICA),),
            "none",
            width=HALF,
        ),
        lines(
            "GPU memory",
            "Memory in use of what the GPU has. An engine takes nearly all at its start and keeps it: good is a flat"
            " line. In use without a replica on the GPU: somebody else's process.",
            (
                Query(f"corral_gpu_memory_used_bytes{GPU}", "in use"),
                Query(f"corral_gpu_memory_total_bytes{GPU}", "of", dashed=True),
            ),
            "bytes",
            width=HALF,
        ),
    )


def _limits() -> Panels:
    return (
        lines(
            "Temperature",
            "Good: 5 degrees or more under the slowdown limit (dashed), where the hardware slows itself down.",
            (
                Query(f"corral_gpu_temperature_celsius{GPU}", "core"),
                Query(f"corral_gpu_memory_temperature_celsius{GPU}", "memory"),
                Query(f"corral_gpu_slowdown_celsius{GPU}", "slowdown", dashed=True),
            ),
            "celsius",
            width=THIRD,
        ),
        lines(
            "Clocks",
            "Good under load: the SM clock near its highest and level. Low while idle is normal. Low under load: see"
            " the panel beside this one for who took it.",
            (
                Query(f"corral_gpu_sm_clock_hertz{GPU}", "SM"),
                Query(f"corral_gpu_memory_clock_hertz{GPU}", "memory"),
            ),
            "hertz",
            width=THIRD,
        ),
        lines(
            "Time slowed down",
            "Share of time in which the clock was taken away, by cause. Good: heat and power brake 0. The power limit"
            " under full load is normal; the power brake is the rack's power supply speaking.",
            (
                Query(f"rate(corral_gpu_thermal_violation_seconds_total{GPU}[$__rate_interval])", "heat"),
                Query(f"rate(corral_gpu_power_violation_seconds_total{GPU}[$__rate_interval])", "power limit"),
                Query(f"rate(corral_gpu_power_brake_seconds_total{GPU}[$__rate_interval])", "power brake"),
            ),
            "percentunit",
            width=THIRD,
            most=1,
        ),
    )


def _faults() -> Panels:
    return (
        rows(
            "What stands against it",
            "Open conditions of this GPU, and for how long each has been open. Good: none. `corral explain GPU` tells"
            " its whole story with what ends each, and its history by serial number.",
            Query(f"time() - corral_condition_opened_timestamp_seconds{GPU}", "{{code}}"),
            {"code": "Condition", "device": "Device"},
            value="Open for",
            unit="s",
            height=SHORT,
        ),
        bars(
            "Xid errors by code",
            "New errors. Good: none. docs/signals.md says what each code means and what Corral does about it.",
            (Query(f"{new_xids('corral_gpu_xid_errors_total', '$__interval', GPU)} > 0", "Xid {{xid}}"),),
            width=THIRD,
        ),
        lines(
            "Memory errors",
            "Good: no uncorrected ones; corrected ones rare. Uncorrected errors end the programs that meet them; a row"
            " that waits to be remapped needs a reset.",
            (
                Query(f"increase(corral_gpu_ecc_uncorrectable_total{GPU}[$__rate_interval])", "uncorrected"),
                Query(f"increase(corral_gpu_ecc_correctable_total{GPU}[$__rate_interval])", "corrected"),
                Query(f"corral_gpu_remap_pending{GPU}", "row remap waits for a reset"),
                Query(f"corral_gpu_remap_failed{GPU}", "row remap failed"),
            ),
            "none",
            width=THIRD,
        ),
        lines(
            "Links",
            "NVLinks that are down, errors of all NVLinks, PCIe packets sent again. Good: 0; replays may flicker.",
            (
                Query(f"corral_gpu_nvlinks_down{GPU}", "NVLinks down"),
                Query(f"increase(corral_gpu_nvlink_errors_total{GPU}[$__rate_interval])", "NVLink errors"),
                Query(f"increase(corral_gpu_pcie_replays_total{GPU}[$__rate_interval])", "PCIe replays"),
            ),
            "none",
            width=THIRD,
        ),
    )
