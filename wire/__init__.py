"""How the processes of Corral speak: configuration, HTTP, tokens, events over SSE, logs, metrics, systemd."""
