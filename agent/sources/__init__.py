"""Sources: the only files that read hardware, the kernel log or a virtual node. Each emits observations.

``virtual`` steps a virtual node and reads it; ``nvml`` keeps NVML in a child process; ``kmsg`` follows the
kernel log; ``host`` and ``service`` tell of the machine around the GPUs. A source that cannot read says so
(SourceState down) and never invents a fault.
"""
