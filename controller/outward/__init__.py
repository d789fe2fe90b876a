"""The hands beyond our own agents: owners of nodes, power, webhooks."""
