"""Shadow: a rule of which is only said what it would do. Why it is there: one place for all reasons.

It fell back by itself (``demotion``), nobody has adopted it as it is now (``pinned``), or the policy says so.
"""

from controller.core.fleet.fleet import Fleet


def why(fleet: Fleet, code: str, node: str, gpu: str | None) -> str | None:
    """Why the rule for a code does nothing there; None if it acts."""
    demoted = fleet.ledger.demoted.get(code)
    if demoted is not None:
        return f"the rule is in shadow: {demoted.text}"
    settings = fleet.settings
    if code in settings.shadowed:
        return f"the rule for {code} is in shadow: {settings.shadowed[code]}"
    if (settings.rules or settings.pools) and fleet.rule(code, node, gpu).shadow:
        return f"the rule for {code} is in shadow"
    return None
