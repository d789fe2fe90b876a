"""The one loop that decides: what waits is thought about, stored, and only then answered."""
