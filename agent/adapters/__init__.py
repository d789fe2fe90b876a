"""Engine adapters: how each engine is started, what tells that it works, how it is let go. One file an engine."""
