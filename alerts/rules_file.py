"""A group of rules as the YAML that Prometheus reads."""

import json

from alerts.alert import Alert, Group, Recording
from alerts.speed import divided, in_time

GENERATED = "# Written by: python -m alerts. Change alerts/{subject}.py instead."


def rules_file(group: Group, faster: int = 1) -> str:
    """The file, with all durations divided by ``faster``."""
    head = [GENERATED.format(subject=group.subject), f"# {group.head}", "groups:", f"  - name: corral-{group.subject}"]
    rules = [line for rule in group.rules for line in _rule(rule, group.subject, faster)]
    return "\n".join([*head, "    rules:", *rules]) + "\n"


def _rule(rule: Alert | Recording, subject: str, faster: int) -> list[str]:
    expr = in_time(rule.expr, faster)
    if isinstance(rule, Recording):
        return [f"      - record: {rule.name}", *_text("expr", expr, 8)]
    lines = [f"      - alert: {rule.name}", *_text("expr", expr, 8)]
    lines += [f"        for: {divided(rule.wait, faster)}"] if rule.wait else []
    lines += [f"        keep_firing_for: {divided(rule.keep, faster)}"] if rule.keep else []
    lines += [f"        labels: {{severity: {rule.severity}, subject: {subject}}}", "        annotations:"]
    lines += [*_text("summary", rule.summary, 10), *_text("description", rule.description, 10)]
    return [*lines, f"          runbook_url: {rule.runbook}"]


def _text(key: str, text: str, indent: int) -> list[str]:
    """A text of one line as JSON has it, which YAML reads too; of several as a block."""
    space = " " * indent
    if "\n" not in text:
        return [f"{space}{key}: {json.dumps(text, ensure_ascii=False)}"]
    return [f"{space}{key}: |-", *(f"{space}  {line}".rstrip() for line in text.split("\n"))]
