"""Active checks of this node's GPUs in three grades: what is run, on whom it may run, and what its figures mean.

    plan        the tests of each grade, and how long each may take
    leave       whether this grade may run on these GPUs now (pure)
    readings    checks of what the agent has read anyway (pure)
    opening, exact, memory, copies, rate, allreduce, burn     figures in, verdict out (pure)
    ruling      from figures to a Check, by the files above (pure)
    pace, heat  what ends a run early: neighbours that slow down, a GPU that gets hot (pure)
    child       the program that measures, as a process of its own that is killed as a whole
    watch       looks at the neighbours and the heat while it runs
    diag        one run

The program itself is the engine's (``python -m engine.diag``), for PyTorch lives there; it is started, never imported.
"""
