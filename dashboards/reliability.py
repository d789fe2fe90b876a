"""The reliability board: how often GPUs fail, what became of repairs, and whether holds were right."""

from dashboards.board import INCIDENT, Panels, assemble, new_board
from dashboards.panels import GREEN, HALF, NONE, RED, THIRD, WIDE, YELLOW, Query, lines, number, rows

UID = "corral-reliability"
ENDS = 'state=~"done|failed|refused|timed_out|cancelled"'
REPAIRS = 'of=~"restart_replica|reset_gpu|reboot_node|power_cycle"'


def board() -> bytes:
    """The board's JSON."""
    made = new_board(
        UID, "Corral / Reliability", "How often GPUs fail, what repairs achieve, whether holds were right."
    )
    return assemble(
        made.time("now-7d", "now"),
        (
            ("How often", _how_often()),
            ("What became of repairs", _repairs()),
            ("Was it right?", _precision()),
        ),
        (INCIDENT,),
    )


def _how_often() -> Panels:
    return (
        number(
            "Xid errors a day and 1,000 GPUs",
            "Over the time shown, injected ones left out. Good: a few, most of them a program's own mistake (13,"
            " 31, 43)."
            " To compare: the training of Llama 3 was interrupted by its GPUs 0.3 times a day and 1,000 GPUs"
            " (arXiv 2407.21783, table 5).",
            Query(
                "sum(increase(corral_gpu_xids_total[$__range])) / (count(corral_gpu_up) / 1000) / ($__range_s / 86400)",
                "errors",
            ),
            "none",
            steps=((None, GREEN), (10, YELLOW), (100, RED)),
        ),
        number(
            "Out of service",
            "Share of the GPUs that take no work now. Good: under 2 %.",
            Query(f'(sum(corral_gpus{{state!~"healthy|degraded"}}) {NONE}) / sum(corral_gpus)', "out"),
            "percentunit",
            steps=((None, GREEN), (0.02, YELLOW), (0.1, RED)),
        ),
        number(
            "Quarantined",
            "GPUs that came back too often: they wait for a person or the vendor. Good: 0.",
            Query(f'sum(corral_gpus{{state="quarantined"}}) {NONE}', "quarantined"),
            "none",
            steps=((None, GREEN), (1, YELLOW)),
        ),
        number(
            "Oldest hold",
            "Age of the hold that stands longest. Good: under a day: what nobody ends is capacity that nobody has.",
            Query("time() - min(corral_oldest_hold_timestamp_seconds)", "age"),
            "s",
            steps=((None, GREEN), (86400, YELLOW)),
        ),
        lines(
            "Xid errors by code, an hour each",
            "Good: few, and none of the certain ones (48, 64, 79, 95, 119, 120, 140).",
            (Query("sum by (xid) (increase(corral_gpu_xid_errors_total[1h])) > 0", "Xid {{xid}}"),),
            "none",
            stacked=True,
        ),
        rows(
            "Nodes with the most Xid errors",
            "Over the time shown. Good: no node stands far above the rest; one that does has a board, a riser or a"
            " supply"
            " of its own trouble.",
            Query("topk(20, sum by (node) (increase(corral_gpu_xids_total[$__range]))) > 0", "{{node}}"),
            {"node": "Node"},
            value="Errors",
            width=HALF,
            link=("Open this node", "/d/corral-node?var-node=${__data.fields.Node}"),
        ),
    )


def _repairs() -> Panels:
    return (
        lines(
            "Repairs by outcome, an hour each",
            "Restarts, resets, reboots and power cycles that ended. Good: done.",
            (
                Query(
                    f"sum by (of, state) (increase(corral_action_moves_total{{{REPAIRS},{ENDS}}}[1h])) > 0",
                    "{{of}} {{state}}",
                ),
            ),
            "none",
            stacked=True,
            width=THIRD,
        ),
        lines(
            "Repairs that worked",
            "Share of the ended ones that were done, by kind, over a day. Good: over 90 %. A kind that falls off is not"
            " worth its disruption: `corral policy` can leave it out.",
            (
                Query(
                    f'sum by (of) (increase(corral_action_moves_total{{{REPAIRS},state="done"}}[1d]))'
                    f" / sum by (of) (increase(corral_action_moves_total{{{REPAIRS},{ENDS}}}[1d]))",
                    "{{of}}",
                ),
            ),
            "percentunit",
            most=1,
            width=THIRD,
        ),
        lines(
            "Drains by outcome, an hour each",
            "Good: done. Timed-out drains cut requests off: give them longer, or see what holds on to its requests.",
            (Query(f'sum by (state) (increase(corral_action_moves_total{{of="drain",{ENDS}}}[1h])) > 0', "{{state}}"),),
            "none",
            stacked=True,
            width=THIRD,
        ),
        lines(
            "Waiting, by kind",
            "Actions that wait for an approval, room in a budget or an owner. Good: none that stay.",
            (Query('sum by (of) (corral_actions{state="waiting"}) > 0', "{{of}}"),),
            "none",
            width=WIDE,
            stacked=True,
        ),
    )


def _precision() -> Panels:
    return (
        rows(
            "Precision of each rule",
            "Share of a rule's judged holds that were right, of 28 days. Good: over 95 %. A rule that falls under its"
            " limit steps back to shadow by itself. No row: nobody has judged any: `corral incident close --verdict`.",
            Query("corral_rule_precision_ratio", "{{rule}}"),
            {"rule": "Rule"},
            value="Right",
            unit="percentunit",
            width=HALF,
        ),
        rows(
            "Holds by verdict",
            "Holds of 28 days by what people said of them. Good: right; *none* is nobody's word yet.",
            Query("corral_rule_verdicts > 0", "{{rule}}"),
            {"rule": "Rule", "verdict": "Verdict"},
            value="Holds",
            width=HALF,
        ),
        rows(
            "Rules that do not act",
            "Demoted by themselves, or in shadow until adopted. Good: none.",
            Query("corral_rule_demoted == 1 or corral_rule_shadowed == 1", "{{rule}}"),
            {"rule": "Rule"},
            width=WIDE,
        ),
    )
