"""What becomes of replicas: restarts, retirement, burial, and what their owners are asked."""
