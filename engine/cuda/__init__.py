"""The engine on CUDA: fused kernels of our own in Triton, paged attention on them, graphs of decode steps.

Read ``kernels`` (what runs on the GPU), ``attention`` and ``model`` (who launches it), then ``graphs``; ``assembly``
puts them together. Triton's interpreter runs the kernels on a CPU, where the tests hold them against plain PyTorch
(float32 and float16 only: the interpreter is wrong in bfloat16).
"""
