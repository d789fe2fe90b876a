"""Two policies over a fleet's stored past, in a process of their own: decisions do not wait for it."""
