"""The fleet board: can users be served, what is out of service and why, what do the GPUs do with their time."""

from dashboards.board import INCIDENT, Panels, assemble, new_board
from dashboards.panels import DOINGS, GREEN, HALF, NONE, RED, STATES, THIRD, WIDE, YELLOW, Query, lines, number, rows
from dashboards.plots import bars
from dashboards.recorded import (
    DOING,
    DRAM_ACTIVE,
    POWER,
    SM_ACTIVE,
    TENSOR_ACTIVE,
    TOKENS,
    UTILIZATION,
    XID_ERRORS,
    recorded,
)

UID = "corral-fleet"
GPU_LINK = ("Open this GPU", "/d/corral-gpu?var-node=${__data.fields.Node}&var-gpu=${__data.fields.GPU}")
REPAIRS = 'of=~"reset_gpu|reboot_node|power_cycle"'
BROKEN = 'code=~"5.."'


def board() -> bytes:
    """The board's JSON."""
    made = new_board(UID, "Corral / Fleet", "All GPUs and all that they serve: start here.")
    return assemble(
        made,
        (
            ("Are users served?", _serving()),
            ("What is out of service?", _capacity()),
            ("What went wrong, and what is done about it", _faults()),
            ("What the GPUs do with their time", _work()),
        ),
        (INCIDENT,),
    )


def _serving() -> Panels:
    return (
        number(
            "Replicas missing",
            "Ready replicas that deployments ask for and do not have, added up. Good: 0. `corral status` says what each"
            " of them waits for.",
            Query("sum(clamp_min(corral_replicas_wanted - corral_replicas_ready, 0))", "missing"),
            "none",
            steps=((None, GREEN), (1, YELLOW)),
        ),
        number(
            "Deployments under their floor",
            "Deployments with fewer ready replicas than the floor below which no repair goes. Good: 0. Anything else is"
            " what users feel next.",
            Query(f"count(corral_replicas_ready < corral_replicas_floor) {NONE}", "under the floor"),
            "none",
            steps=((None, GREEN), (1, RED)),
        ),
        number(
            "Requests that failed, 5 min",
            "Share of the requests that the gateways answered with a server's error. Good: under 0.1 %. Absent without"
            " a gateway: then ask what stands in front of your replicas.",
            Query(
                f"(sum(increase(corral_gateway_requests_total{{{BROKEN}}}[5m]))"
                " or 0 * sum(corral_gateway_controller_up)) / sum(increase(corral_gateway_requests_total[5m]))",
                "failed",
            ),
            "percentunit",
            steps=((None, GREEN), (0.001, YELLOW), (0.01, RED)),
        ),
        number(
            "Automation",
            "Whether any pause stands, of everything, a pool or a node. Good: on. While one stands nothing is held,"
            " drained or repaired there; `corral status` says where.",
            Query(f"(sum(corral_pauses) {NONE}) > bool 0", "pauses"),
            "none",
            steps=((None, GREEN), (1, YELLOW)),
            words={"0": ("on", GREEN), "1": ("paused", YELLOW)},
        ),
        lines(
            "Replicas ready, wanted, and the floor",
            "Good: ready on wanted. Between wanted and the floor a repair or a start is under way; at the floor"
            " (dashed) further repairs wait.",
            (
                Query("corral_replicas_ready", "{{deployment}} ready"),
                Query("corral_replicas_wanted", "{{deployment}} wanted"),
                Query("corral_replicas_floor", "{{deployment}} floor", dashed=True),
            ),
            "none",
        ),
        lines(
            "Time to first byte, 99 %",
            "What the slowest hundredth of users waits, by deployment, as the gateways saw it. Good: flat. A rise with"
            " a rise of the queue is load; without it, look for a slow GPU on the Serving board.",
            (
                Query(
                    "histogram_quantile(0.99,"
                    " sum by (le, deployment) (rate(corral_gateway_ttft_seconds_bucket[$__rate_interval])))",
                    "{{deployment}}",
                ),
            ),
            "s",
        ),
    )


def _capacity() -> Panels:
    return (
        lines(
            "GPUs by state",
            "Every GPU once, by the state that is shown for it. Good: all healthy. Cordoned, draining, repairing,"
            " validating and probation are Corral at work; quarantined waits for a person; unknown is not healthy.",
            (Query("sum by (state) (corral_gpus)", "{{state}}"),),
            "none",
            stacked=True,
            colors=STATES,
        ),
        lines(
            "Nodes by state",
            "Good: all live. Suspect and unknown nodes go on serving; lost ones are out of reach of two observers, and"
            " their replicas are placed elsewhere.",
            (Query("sum by (state) (corral_nodes)", "{{state}}"),),
            "none",
            stacked=True,
            colors=STATES,
        ),
        lines(
            "Holds by owner",
            "Reasons that keep GPUs out of service, by who placed them. Good: few, and none that stays. Nobody's hold"
            " is lifted by anybody else.",
            (Query("sum by (owner) (corral_holds)", "{{owner}}"),),
            "none",
            stacked=True,
            width=THIRD,
        ),
        rows(
            "GPUs that are not in service",
            "Good: none. A row leads to that GPU's board; `corral explain GPU` tells the whole story.",
            Query('corral_gpu_state{state!="healthy"} == 1', "{{gpu}}"),
            {"node": "Node", "gpu": "GPU", "state": "State"},
            width=WIDE - THIRD,
            link=GPU_LINK,
        ),
    )


def _faults() -> Panels:
    return (
        number(
            "Critical incidents open",
            "Good: 0. `corral status` lists them with what each waits for.",
            Query(f'sum(corral_incidents_open{{severity="critical"}}) {NONE}', "critical"),
            "none",
            steps=((None, GREEN), (1, RED)),
        ),
        number(
            "Waiting for a person",
            "Actions that wait for an approval, for room in a budget, or for a person's hands. Good: 0.",
            Query(f'sum(corral_actions{{state="waiting"}}) {NONE}', "waiting"),
            "none",
            steps=((None, GREEN), (1, YELLOW)),
        ),
        number(
            "Repairs under way",
            "Resets, reboots and power cycles that are ordered or run now. Good: few: each takes its disruption set out"
            " of service, and the budget limits how many run at once.",
            Query(f'sum(corral_actions{{{REPAIRS},state=~"ordered|running"}}) {NONE}', "repairs"),
            "none",
            steps=((None, GREEN), (5, YELLOW)),
        ),
        number(
            "Too much looks sick",
            "Good: no. Yes: more looks sick than Corral takes out of service by itself, so either the fleet is, or what"
            " judges it. Nothing more is held until a person has looked.",
            Query(f'sum(corral_conditions_open{{code="too_much_sick"}}) {NONE}', "sick"),
            "none",
            steps=((None, GREEN), (1, RED)),
            words={"0": ("no", GREEN), "1": ("yes", RED)},
        ),
        lines(
            "Open conditions by code",
            "What stands against GPUs, nodes and replicas now: the ten most frequent codes. Good: none. docs/signals.md"
            " says what each means and what ends it.",
            (Query("topk(10, sum by (code) (corral_conditions_open))", "{{code}}"),),
            "none",
            stacked=True,
        ),
        bars(
            "Xid errors by code",
            "New errors of all GPUs, injected ones left out. Good: none. 13, 31 and 43 are mostly a program's own"
            " mistake.",
            (Query(f"sum by (xid) (sum_over_time({XID_ERRORS.name}[$__interval])) > 0", "Xid {{xid}}"),),
        ),
        bars(
            "What Corral did",
            "Actions that came to an end, by kind and outcome. Good: done. Refused and timed out ones are on the"
            " Reliability board.",
            (
                Query(
                    "sum by (of, state) (increase(corral_action_moves_total"
                    '{state=~"done|failed|refused|timed_out|cancelled"}[$__interval])) > 0',
                    "{{of}} {{state}}",
                ),
            ),
            width=HALF,
        ),
        lines(
            "Budgets, share that is used",
            "What Corral may take out of service within its window (nodes newly cordoned, of the fleet, a pool, a rack)"
            " and the repairs that may run at one time. Good: under 100 %. At 100 % what is harmful waits, and what is"
            " wrong is only written down: a person looks first.",
            (Query("corral_budget_used / corral_budget_limit", "{{budget}}"),),
            "percentunit",
            width=HALF,
        ),
    )


def _work() -> Panels:
    return (
        lines(
            "What the GPUs do",
            "Every GPU by the one word for what it does with its time. Good for a serving fleet: memory-bound. Starved"
            " and launch-bound GPUs are paid for and not used, hung and throttled ones are broken, whatever their"
            " utilization says.",
            (recorded(DOING, "{{doing}}"),),
            "none",
            stacked=True,
            colors=DOINGS,
        ),
        lines(
            "Utilization beside what the chips do, fleet means",
            "Good: memory or SM activity close under utilization. The gap between them is the utilization trap: time"
            " that counted as busy and did little.",
            (
                recorded(UTILIZATION, "utilization (any kernel ran)"),
                recorded(SM_ACTIVE, "SM activity"),
                recorded(DRAM_ACTIVE, "DRAM activity"),
                recorded(TENSOR_ACTIVE, "tensor activity"),
            ),
            "percentunit",
            most=1,
        ),
        lines(
            "Power of all GPUs",
            "Good: it follows the work. Power at idle level under high utilization is a contradiction.",
            (recorded(POWER, "power"),),
            "watt",
            width=HALF,
        ),
        lines(
            "Tokens made",
            "Output tokens a second of all engines that are scraped, by model. Good: it follows the load.",
            (recorded(TOKENS, "{{model_name}}"),),
            "none",
            width=HALF,
        ),
    )
