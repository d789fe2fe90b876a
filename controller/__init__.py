"""The control plane: stores what agents see, decides in a pure core, tells nodes what to run, shows the fleet.

Read ``app`` (the parts), ``deciding.conductor`` (the one loop), ``deciding.mind`` (what goes into a
transaction), then ``core`` (the decisions) and ``api`` (the interface).
"""
