"""The reliability board: how often GPUs fail, how long that lasts, what became of repairs, whether holds were right."""

from dashboards.board import INCIDENT, Panels, assemble, new_board
from dashboards.panels import GREEN, HALF, NONE, QUARTER, RED, THIRD, YELLOW, Query, lines, number, rows
from dashboards.plots import bars, beside, heat
from dashboards.recorded import XID_ERRORS, XIDS

UID = "corral-reliability"
ENDS = 'state=~"done|failed|refused|timed_out|cancelled"'
REPAIRS = 'of=~"restart_replica|reset_gpu|reboot_node|power_cycle"'
FAULTS = 'severity=~"error|critical"'


def board() -> bytes:
    """The board's JSON."""
    made = new_board(
        UID,
        "Corral / Reliability",
        "How often GPUs fail, for how long, what repairs achieve, whether holds were right.",
    )
    return assemble(
        made.time("now-7d", "now"),
        (
            ("How often, and how long", _how_often()),
            ("Which faults, and where", _where()),
            ("What became of repairs", _repairs()),
            ("Was it right?", _precision()),
        ),
        (INCIDENT,),
    )


def _per(sums: str, counts: str, by: str = "") -> str:
    """The mean over the time shown of what a histogram has timed."""
    of = f"sum by ({by})" if by else "sum"
    return f"{of} (increase({sums}[$__range])) / ({of} (increase({counts}[$__range])) > 0)"


def _how_often() -> Panels:
    return (
        number(
            "Between two faults of a GPU",
            "Mean time that a GPU ran until an incident began (MTBF), over the time shown, by incidents of"
            " severity error or critical. Good: over a year. To compare: the training of Llama 3 was interrupted"
            " once in 9 years of GPU time (arXiv 2407.21783, table 5).",
            Query(
                "sum(avg_over_time(corral_gpus[$__range]))"
                f" / (sum(rate(corral_incidents_total{{{FAULTS}}}[$__range])) > 0)",
                "MTBF",
            ),
            "s",
            steps=((None, RED), (30 * 86400, YELLOW), (365 * 86400, GREEN)),
            absent="no fault",
        ),
        number(
            "Until it is over",
            "Mean time from an incident's opening to its end (MTTR), over the time shown. Good: under an hour: what"
            " Corral repairs itself takes minutes, and a person's part is the rest.",
            Query(
                _per(f"corral_incident_seconds_sum{{{FAULTS}}}", f"corral_incident_seconds_count{{{FAULTS}}}"), "MTTR"
            ),
            "s",
            steps=((None, GREEN), (3600, YELLOW), (86400, RED)),
            absent="none ended",
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
        beside(
            "How long a GPU stays in each phase",
            "Mean over the time shown, of GPUs that left the phase: MTTR by phase. Good: seconds in fenced, minutes in"
            " draining, repairing and validating. Long in cordoned or quarantined: a person's turn; long in unknown or"
            " lost: the node.",
            Query(
                _per("corral_gpu_phase_seconds_sum", "corral_gpu_phase_seconds_count", "state"),
                "{{state}}",
            ),
            "s",
            steps=((None, GREEN), (3600, YELLOW), (86400, RED)),
        ),
        rows(
            "Lemons",
            "Cards that stand out among the others of their board by how often they fail, judged hourly. Good: none."
            " `corral lemons` names them with their serial numbers: for the vendor.",
            Query("corral_lemons > 0", "{{board}}"),
            {"board": "Board"},
            value="Lemons",
            width=QUARTER,
        ),
        number(
            "Oldest hold",
            "Age of the hold that stands longest. Good: under a day: what nobody ends is capacity that nobody has.",
            Query("time() - min(corral_oldest_hold_timestamp_seconds)", "age"),
            "s",
            steps=((None, GREEN), (86400, YELLOW)),
            absent="no hold",
        ),
    )


def _where() -> Panels:
    return (
        heat(
            "Xid errors by code and time",
            "The darker, the more of this code, injected ones left out. Good: an empty map; a row that fills is one"
            " cause in many places (a program, a driver), a column one moment (a power dip, a rollout). The certain"
            " faults are 48, 64, 79, 95, 119, 120 and 140; 13, 31 and 43 are mostly a program's own mistake.",
            Query(f"sum by (xid) (sum_over_time({XID_ERRORS.name}[$__interval]))", "Xid {{xid}}"),
        ),
        rows(
            "Nodes with the most Xid errors",
            "Over the time shown. Good: no node stands far above the rest; one that does has a board, a riser or a"
            " supply of its own trouble.",
            Query(f"topk(20, sum by (node) (sum_over_time({XIDS.name}[$__range])))", "{{node}}"),
            {"node": "Node"},
            value="Errors",
            width=HALF,
            link=("Open this node", "/d/corral-node?var-node=${__data.fields.Node}"),
        ),
    )


def _repairs() -> Panels:
    return (
        bars(
            "Repairs by outcome",
            "Restarts, resets, reboots and power cycles that ended. Good: done.",
            (
                Query(
                    f"sum by (of, state) (increase(corral_action_moves_total{{{REPAIRS},{ENDS}}}[$__interval])) > 0",
                    "{{of}} {{state}}",
                ),
            ),
        ),
        bars(
            "Drains by outcome",
            "Good: done. Timed-out drains cut requests off: give them longer, or see what holds on to its requests.",
            (
                Query(
                    f'sum by (state) (increase(corral_action_moves_total{{of="drain",{ENDS}}}[$__interval])) > 0',
                    "{{state}}",
                ),
            ),
        ),
        lines(
            "Repairs that worked",
            "Share of the ended ones that were done, by kind, over a day. Good: over 90 %. A kind that falls off is not"
            " worth its disruption: `corral policy` can leave it out.",
            (
                Query(
                    f'sum by (of) (increase(corral_action_moves_total{{{REPAIRS},state="done"}}[1d]))'
                    f" / (sum by (of) (increase(corral_action_moves_total{{{REPAIRS},{ENDS}}}[1d])) > 0)",
                    "{{of}}",
                ),
            ),
            "percentunit",
            most=1,
            width=THIRD,
        ),
        rows(
            "Repairs by attempt",
            "Which attempt it was that ended so, over the time shown. Good: the first one is done. Thirds that are done"
            " say that the first came too early; thirds that fail, that the fault is not of the kind that it mends.",
            Query("sum by (of, attempt, state) (increase(corral_repair_attempts_total[$__range])) > 0", "{{of}}"),
            {"of": "Repair", "attempt": "Attempt", "state": "Outcome"},
            value="Times",
            width=THIRD,
        ),
        lines(
            "Waiting, by kind",
            "Actions that wait for an approval, room in a budget or an owner. Good: none that stay.",
            (Query('sum by (of) (corral_actions{state="waiting"}) > 0', "{{of}}"),),
            "none",
            width=THIRD,
            stacked=True,
        ),
    )


def _precision() -> Panels:
    judged = 'sum(corral_rule_verdicts{verdict=~"right|wrong"})'
    return (
        number(
            "Holds that were right",
            "Of those of 28 days that somebody has judged (cordon precision). Good: over 95 %: each wrong one was a"
            " healthy GPU taken from users.",
            Query(f'sum(corral_rule_verdicts{{verdict="right"}}) / ({judged} > 0)', "right"),
            "percentunit",
            steps=((None, RED), (0.9, YELLOW), (0.95, GREEN)),
            absent="nobody has judged any",
        ),
        number(
            "Holds that nobody has judged",
            "Of 28 days. Good: few: `corral incident close ID --verdict right|wrong` judges, afterwards too.",
            Query(f'sum(corral_rule_verdicts{{verdict="none"}}) {NONE}', "unjudged"),
            "none",
            steps=((None, GREEN), (20, YELLOW)),
        ),
        rows(
            "Rules that do not act",
            "Demoted by themselves, or in shadow until adopted. Good: none.",
            Query("corral_rule_demoted == 1 or corral_rule_shadowed == 1", "{{rule}}"),
            {"rule": "Rule"},
            width=HALF,
            height=4,
        ),
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
    )
