"""Probes: each file knows one class of faults, as a pure function of observations and time."""
