"""What is wrong with a PromQL expression, judged by the metric catalogue: the gate of dashboards and alerts.

A metric that no process exports, a label that the metric does not carry, a counter that is shown raw, a
gauge under ``rate``, a vector match on a label that one side has lost: Prometheus answers all of these with
an empty result and no error, so a board looks healthy and an alert never fires. Here they are faults.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import promql_parser as promql

from dashboards.recorded import RECORDED
from vocab.metrics import AGENT, CONTROLLER, ENGINE, GATEWAY, Kind, Metric

SCRAPED = frozenset({"job", "instance"})  # Prometheus adds them to every series

# What discovery adds to the targets of a process, and with it to all its series (deploy/prometheus, /sd/...).
DISCOVERED: tuple[tuple[tuple[Metric, ...], frozenset[str]], ...] = (
    (AGENT, frozenset({"node"})),
    (CONTROLLER, frozenset()),
    (ENGINE, frozenset({"node", "replica", "deployment"})),
    (GATEWAY, frozenset()),
)

PROMETHEUS_OWN = {
    "up": Metric("up", Kind.GAUGE, "1 while the target answers scrapes.", ("node", "replica", "deployment")),
    "ALERTS": Metric("ALERTS", Kind.GAUGE, "Pending and firing alerts.", ("alertname", "alertstate", "severity")),
}

GROWTH = frozenset({"rate", "irate", "increase", "resets"})  # only a counter has these
GROWN = "increase"  # so is the difference between a counter and itself some time ago
COUNTED = frozenset({"count", "group"})  # whose result says that series are there, and nothing of their values
SETS = frozenset({"and", "or", "unless"})
ONLY_THERE = frozenset({"and", "unless"})  # of the right side it counts only whether it is there
COMPARED = frozenset({">", ">=", "<", "<=", "==", "!="})
WHOLE = frozenset({"topk", "bottomk", "limitk"})  # aggregations that keep their input's labels
TIMES = {"$__range_s": "3600", "$__rate_interval": "4m", "$__interval": "1m", "$__range": "1h"}  # any duration does


@dataclass(frozen=True)
class Series:
    """What a metric name stands for: its row and all labels that its series can carry."""

    row: Metric
    labels: frozenset[str]


def catalogue() -> dict[str, Series]:
    """Every name that Prometheus knows once it scrapes our processes; a histogram has three."""
    found = {name: Series(row, frozenset(row.labels) | SCRAPED) for name, row in PROMETHEUS_OWN.items()}
    for rows, discovered in DISCOVERED:
        for row in rows:
            labels = frozenset(row.labels) | discovered | SCRAPED
            if row.kind is Kind.HISTOGRAM:
                found[f"{row.name}_bucket"] = Series(row, labels | {"le"})
                found[f"{row.name}_sum"] = found[f"{row.name}_count"] = Series(row, labels)
            else:
                found[row.name] = Series(row, labels)
    return found


def recorded() -> dict[str, Series]:
    """What the rules of the boards record, with the labels that are left."""
    known = catalogue()
    return {
        row.name: Series(Metric(row.name, Kind.GAUGE, "", ()), check(row.expr, known)[1]) for row in RECORDED.values()
    }


def substitute(expression: str) -> str:
    """The expression with Grafana's variables replaced by something of their kind."""
    for name, value in TIMES.items():
        expression = expression.replace(name, value)
    return re.sub(r"\$\{?\w+(:\w+)?\}?", "any", expression)


def check(expression: str, known: Mapping[str, Series] | None = None) -> tuple[list[str], frozenset[str]]:
    """The faults of ``expression``, and the labels that its result can carry."""
    reader = _Reader(catalogue() if known is None else known)
    try:
        tree = promql.parse(substitute(expression))
    except ValueError as error:
        return [f"it does not parse: {error}"], frozenset()
    return reader.faults, reader.labels(tree)


@dataclass
class _Reader:
    """Walks a tree from the leaves up: labels of each part, and what is wrong with it."""

    known: Mapping[str, Series]
    faults: list[str] = field(default_factory=list)

    def labels(self, part: promql.Expr, under: str = "") -> frozenset[str]:
        """The labels that ``part`` can carry; ``under`` names the function that takes it, if one does."""
        match part:
            case promql.ParenExpr() | promql.UnaryExpr() | promql.SubqueryExpr():
                return self.labels(part.expr, under)
            case promql.MatrixSelector():
                return self._selector(part.vector_selector, under)
            case promql.VectorSelector():
                return self._selector(part, under)
            case promql.Call():
                return self._call(part, under)
            case promql.AggregateExpr():
                return self._aggregate(part)
            case promql.BinaryExpr():
                return self._binary(part, under)
        return frozenset()  # a number or a string

    def _selector(self, part: promql.VectorSelector, under: str) -> frozenset[str]:
        series = self.known.get(part.name or "")
        if series is None:
            self.faults.append(f"no process exports {part.name}")
            return frozenset()
        self._need({matcher.name for matcher in part.matchers.matchers}, series.labels, f"{part.name} has no label")
        grows = series.row.kind in (Kind.COUNTER, Kind.HISTOGRAM)
        if grows and under not in GROWTH | COUNTED:
            self.faults.append(f"{part.name} only ever grows: show its rate() or increase()")
        if not grows and under in GROWTH:
            self.faults.append(f"{part.name} is not a counter: {under}() of it means nothing")
        return series.labels

    def _call(self, part: promql.Call, under: str) -> frozenset[str]:
        under = under if part.func.name == "last_over_time" else part.func.name
        parts = [self.labels(argument, under) for argument in part.args]
        texts = [argument.val for argument in part.args if isinstance(argument, promql.StringLiteral)]
        if part.func.name in ("label_replace", "label_join"):
            return parts[0] | {texts[0]}
        if part.func.name == "histogram_quantile":
            self._need({"le"}, parts[1], "histogram_quantile needs the label")
            return parts[1] - {"le"}
        return frozenset().union(*parts)

    def _aggregate(self, part: promql.AggregateExpr) -> frozenset[str]:
        inner = self.labels(part.expr, str(part.op))
        if part.modifier is None:
            return inner if str(part.op) in WHOLE else frozenset()
        named = frozenset(part.modifier.labels)
        self._need(named, inner, f"{part.op} groups by a label that is not there:")
        kept = named if part.modifier.type == promql.AggModifierType.By else inner - named
        return inner if str(part.op) in WHOLE else kept

    def _binary(self, part: promql.BinaryExpr, under: str = "") -> frozenset[str]:
        op = str(part.op)
        passes = op in SETS or (under == GROWN and op in COMPARED and _is_number(part.rhs))
        under = under if passes else ""
        if op == "-" and _grown(part) is not None:
            return self.labels(part.lhs, GROWN) | self.labels(part.rhs, GROWN)
        begins = op == "or" and _grown(part.lhs) is not None and _grown(part.lhs) == _counter(part.rhs)
        left = self.labels(part.lhs, under)
        right = self.labels(part.rhs, GROWN if begins else "group" if op in ONLY_THERE else under)
        if part.modifier is not None and part.modifier.matching is not None:
            named = frozenset(part.modifier.matching.labels)
            for side, labels in (("left", left), ("right", right)):
                self._need(named, labels, f"the {side} side of {part.op} has no label")
        borrowed = frozenset(part.modifier.group_labels or ()) if part.modifier is not None else frozenset()
        self._need(borrowed, left | right, f"neither side of {part.op} has the label")
        if _is_number(part.lhs):
            return right
        return left | right if op == "or" else left | borrowed

    def _need(self, named: Iterable[str], there: frozenset[str], saying: str) -> None:
        self.faults.extend(f"{saying} {name}" for name in sorted(set(named) - there))


def _bare(part: promql.Expr) -> promql.Expr:
    """Without parentheses, and without a comparison with a number: it only leaves series out."""
    while isinstance(part, promql.ParenExpr):
        part = part.expr
    if isinstance(part, promql.BinaryExpr) and str(part.op) in COMPARED and _is_number(part.rhs):
        return _bare(part.lhs)
    return part


def _selected(part: promql.Expr) -> promql.VectorSelector | None:
    """What a selector, or ``last_over_time`` of one, takes."""
    if isinstance(part, promql.Call) and part.func.name == "last_over_time":
        part = part.args[0]
    part = part.vector_selector if isinstance(part, promql.MatrixSelector) else part
    return part if isinstance(part, promql.VectorSelector) else None


def _counter(part: promql.Expr) -> str | None:
    found = _selected(_bare(part))
    return found.name if found is not None and found.offset is None else None


def _grown(part: promql.Expr) -> str | None:
    """The series of which this is the difference between now and some time ago; None if it is anything else."""
    part = _bare(part)
    if not isinstance(part, promql.BinaryExpr) or str(part.op) != "-":
        return None
    before = _selected(_bare(part.rhs))
    now = _counter(part.lhs)
    return now if before is not None and before.offset is not None and before.name == now else None


def _is_number(part: promql.Expr) -> bool:
    if isinstance(part, promql.Call):
        return part.func.name in {"time", "scalar"}
    return isinstance(part, promql.NumberLiteral) or (isinstance(part, promql.ParenExpr) and _is_number(part.expr))
