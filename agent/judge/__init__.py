"""The judge: what the probes find becomes events, folded, linked to their cause, and cleared."""

from agent.judge.judge import Judge

__all__ = ["Judge"]
