"""The agent: on every GPU node it watches the hardware, judges, fences within bounds, and runs replicas.

sources -> Observation -> probes -> judge -> Event -> spool -> uplink -> controller
                                      |-> fence -> replicas <- Desired <-|
"""
