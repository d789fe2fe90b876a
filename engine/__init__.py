"""The inference server that agents run, one process a replica: the request path of the house.

Read in this order: ``sequence`` and ``blocks`` (what a request is and where its keys and values live),
``scheduler`` (who runs in the next step), ``runner`` with ``model``, ``attention`` and ``sampler`` (the step),
``loop`` (the thread that steps), ``service`` and ``gate`` (requests and who is let in), ``server`` (HTTP).
Nothing on the way to a listening socket imports torch: that happens in the loop's thread, while it loads.
"""
