"""The program that measures a GPU for active checks: ``python -m engine.diag --device cuda TEST…``.

It prints figures (``vocab.diag``), one JSON object a line, and judges nothing. Each test is one file: ``opening``,
``exact``, ``memory``, ``copies``, ``rate``, ``allreduce``, ``burn``; ``bench`` is the device that they run on. Who
starts it sets CUDA_VISIBLE_DEVICES and ends it when its time is over.
"""
