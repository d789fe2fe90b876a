"""The gate of dashboards and alerts finds what Prometheus would answer with silence."""

import pytest

from tests.expressions import Series, catalogue, check, substitute
from vocab.metrics import METRICS, Kind, Metric

KNOWN = {
    "power_watts": Series(Metric("power_watts", Kind.GAUGE, "W"), frozenset({"node", "gpu"})),
    "faults_total": Series(Metric("faults_total", Kind.COUNTER, "N"), frozenset({"node", "gpu", "code"})),
    "gpu_info": Series(Metric("gpu_info", Kind.INFO, "1"), frozenset({"node", "gpu", "name"})),
    "wait_seconds_bucket": Series(Metric("wait_seconds", Kind.HISTOGRAM, "s"), frozenset({"node", "le"})),
}


@pytest.mark.parametrize(
    ("expression", "labels"),
    [
        ("power_watts", {"node", "gpu"}),
        ('max by (node) (power_watts{gpu=~"$gpu"})', {"node"}),
        ("sum without (code) (rate(faults_total[$__rate_interval]))", {"node", "gpu"}),
        ("power_watts * on (gpu, node) group_left (name) gpu_info", {"node", "gpu", "name"}),
        ("1 - power_watts / 700", {"node", "gpu"}),
        ("topk by (node) (3, power_watts)", {"node", "gpu"}),
        ("histogram_quantile(0.9, sum by (le) (rate(wait_seconds_bucket[5m])))", set()),
        ('label_replace(power_watts, "card", "$1", "gpu", "GPU-(.*)")', {"node", "gpu", "card"}),
        ("max_over_time((power_watts > 100)[1h:1m])", {"node", "gpu"}),
        ("sum(power_watts) or vector(0)", set()),
        ("(faults_total - faults_total offset 5m) >= 0 or faults_total", {"node", "gpu", "code"}),
        ("power_watts and on (node) last_over_time(faults_total[2m])", {"node", "gpu"}),
    ],
)
def test_a_sound_expression_has_no_fault_and_its_labels_are_known(expression, labels):
    assert check(expression, KNOWN) == ([], labels)


@pytest.mark.parametrize(
    ("expression", "fault"),
    [
        ("power_wats", "no process exports power_wats"),
        ('power_watts{uuid="x"}', "power_watts has no label uuid"),
        ("faults_total", "faults_total only ever grows"),
        ("rate(power_watts[5m])", "power_watts is not a counter"),
        ("faults_total - power_watts offset 5m", "faults_total only ever grows"),
        ("last_over_time(faults_total[5m])", "faults_total only ever grows"),
        ("power_watts or faults_total", "faults_total only ever grows"),
        ("sum by (rack) (power_watts)", "sum groups by a label that is not there: rack"),
        ("sum by (node) (power_watts) * on (gpu) gpu_info", "the left side of * has no label gpu"),
        ("power_watts * on (gpu) group_left (rack) gpu_info", "neither side of * has the label rack"),
        ("histogram_quantile(0.9, sum by (node) (rate(wait_seconds_bucket[5m])))", "needs the label le"),
        ("power_watts[", "it does not parse"),
    ],
)
def test_what_prometheus_would_answer_with_silence_is_a_fault(expression, fault):
    faults, _ = check(expression, KNOWN)
    assert len(faults) == 1
    assert fault in faults[0]


def test_every_row_of_the_catalogue_can_be_asked_for():
    assert {series.row.name for series in catalogue().values()} >= {row.name for row in METRICS}


def test_grafanas_variables_are_replaced_by_something_of_their_kind():
    assert substitute('rate(a{b=~"$node",c="${gpu:regex}"}[$__rate_interval])') == 'rate(a{b=~"any",c="any"}[4m])'
