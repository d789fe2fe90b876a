"""A virtual node: GPUs with the values and couplings of a real board, in one mapped file with two faces.

``layout`` is the table that the file is made of, ``state`` opens it, ``physics`` moves it, ``faults`` hurts
it, ``lifecycle`` resets and reboots it, ``view`` reads it as this package's source does. The other face is
a C library that answers NVML calls from the same file.
"""
