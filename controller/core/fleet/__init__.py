"""What is known of the fleet: nodes, GPUs, replicas, what was decided, what is due. Nothing here decides.

Read ``stimuli`` (what comes in), ``ledger`` (what was decided), then ``fleet`` (the two together).
"""
