"""The inference server that agents run, one process a replica: the request path of the house.

Read ``core`` first (requests, cache, scheduler, model, sampler, a step), then ``loop`` (the thread that steps),
``text`` (between text and tokens), ``api`` (who is let in, what is answered), ``files`` and ``loading`` (a model from
disk). ``health`` knows whether it computes right, ``cuda`` has the kernels; ``gateway`` and ``diag`` are programs of
their own.
Nothing on the way to a listening socket imports torch: that happens in the loop's thread, while it loads.
"""
