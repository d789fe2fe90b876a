"""The dimension of a PromQL expression, from the suffixes of its metrics: what a panel's unit must agree with."""

import promql_parser as promql

from dashboards.recorded import RECORDED
from tests.expressions import substitute

Dimension = dict[str, int]  # exponents: s seconds, B bytes, W watts, C degrees, Hz, F operations, n things counted

_SUFFIXES: tuple[tuple[str, Dimension], ...] = (
    ("_info", {}),
    ("_ratio", {}),
    ("_perc", {}),  # vLLM's name for a ratio
    ("corral_gpu_activity", {}),
    ("_watts", {"W": 1}),
    ("_celsius", {"C": 1}),
    ("_hertz", {"Hz": 1}),
    ("_bytes", {"B": 1}),
    ("_bytes_total", {"B": 1}),
    ("_seconds", {"s": 1}),
    ("_seconds_total", {"s": 1}),
    ("_seconds_sum", {"s": 1}),
    ("_bytes_per_second", {"B": 1, "s": -1}),
    ("_flops_per_gpu_total", {"F": 1}),
    ("_flops_per_second", {"F": 1, "s": -1}),
    ("_flops_per_byte_ratio", {"F": 1, "B": -1}),
)

# The Grafana units that show a dimension as it is.
SHOWN: dict[tuple[tuple[str, int], ...], set[str]] = {
    (): {"percentunit", "none", "short"},
    (("s", 1),): {"s"},
    (("B", 1),): {"bytes"},
    (("B", 1), ("s", -1)): {"Bps"},
    (("n", -1), ("s", 1)): {"s"},  # of one thing
    (("W", 1),): {"watt"},
    (("C", 1),): {"celsius"},
    (("Hz", 1),): {"hertz"},
    (("n", 1),): {"none", "short"},
    (("n", 1), ("s", -1)): {"none", "short"},
    (("F", 1), ("s", -1)): {"flops"},
    (("B", -1), ("F", 1)): {"none"},  # Grafana has no name for it
}


def shown_as(expression: str) -> set[str]:
    """The units that a panel of this expression may have."""
    return SHOWN[tuple(sorted(_of(promql.parse(substitute(expression))).items()))]


def _named(name: str) -> Dimension:
    if name in RECORDED:
        return _of(promql.parse(RECORDED[name].expr))
    return next((dimension for suffix, dimension in reversed(_SUFFIXES) if name.endswith(suffix)), {"n": 1})


def _times(left: Dimension, right: Dimension, sign: int = 1) -> Dimension:
    product = {key: left.get(key, 0) + sign * right.get(key, 0) for key in left | right}
    return {key: exponent for key, exponent in product.items() if exponent}


def _of(part: promql.Expr) -> Dimension:
    match part:
        case promql.ParenExpr() | promql.UnaryExpr() | promql.SubqueryExpr():
            return _of(part.expr)
        case promql.MatrixSelector():
            return _named(part.vector_selector.name or "")
        case promql.VectorSelector():
            return _named(part.name or "")
        case promql.AggregateExpr():
            return {"n": 1} if str(part.op).startswith("count") else _of(part.expr)
        case promql.Call():
            return _call(part)
        case promql.BinaryExpr():
            return _binary(part)
    return {}


def _call(part: promql.Call) -> Dimension:
    match part.func.name:
        case "time":
            return {"s": 1}
        case "rate" | "irate":
            return _times(_of(part.args[0]), {"s": 1}, -1)
        case "histogram_quantile":
            return _quantile(part.args[1])
    return _of(part.args[0]) if part.args else {}


def _quantile(part: promql.Expr) -> Dimension:
    """Of what the buckets count: the metric's own name says it."""
    while not isinstance(part, promql.VectorSelector):
        match part:
            case promql.Call():
                part = part.args[0]
            case promql.MatrixSelector():
                part = part.vector_selector
            case _:
                part = part.expr
    return _named((part.name or "").removesuffix("_bucket"))


def _binary(part: promql.BinaryExpr) -> Dimension:
    left, right = _of(part.lhs), _of(part.rhs)
    match str(part.op):
        case "*":
            return _times(left, right)
        case "/":
            return _times(left, right, -1)
        case "+" | "-" | "or":
            return left or right
    return left
