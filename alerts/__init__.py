"""Prometheus rules (rules/), their promtool tests (tests/); the runbooks are in docs/runbooks."""
