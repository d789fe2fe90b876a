"""Where replicas go: the starts of deployments, and what is short for them."""
