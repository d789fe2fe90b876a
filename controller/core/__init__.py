"""The decision core: stimuli in, decision lines out. Pure: no clock, socket, file, random number or log inside.

Read ``stimuli`` (what comes in), ``core`` (the composition), then ``workflow`` (a fault's way).
"""
