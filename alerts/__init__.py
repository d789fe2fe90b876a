"""The alerts of a fleet: rules by subject, what they are tested with (cases/, tests/), one runbook each (runbooks/)."""
