"""The gateway: sends each request to a replica that can take it, and makes a drain invisible to clients.

Reading order: ``table`` and ``routing`` (pure), ``board`` (what is known now), ``roster`` and ``probes`` (who
tells it), ``reach`` (what the controller is told), ``proxy``, ``upstream`` and ``relay`` (the way of one request),
``app`` and ``__main__``.
It must not know torch, GPUs or why a replica is fenced.
"""
