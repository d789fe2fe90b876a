"""DCGM: what NVML does not give, DCGM's own health watches and its events, from a child process of its own.

    sight     is there anything to connect to?              (agent)
    source    starts the child, says its state              (agent)
    beside    what NVML lacks, and DCGM has                 (agent)
    child     the process: bindings, engine, reader, health, policy
    diag      ``dcgmi diag`` as an active check, a process of its own

The order of the inside: names <- bindings <- engine <- watches, reader, health, policy <- child.
"""
