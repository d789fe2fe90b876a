"""What an engine is made of: requests, the paged cache, the one rule of the scheduler, the model and its sampler.

Read in this order: ``sequence`` (a request: known and computed tokens), ``blocks`` (where keys and values live),
``ranking`` and ``scheduler`` (who runs in the next step), ``attention``, ``model`` and ``packed`` (what the step
computes), ``sampler`` (what comes of it), ``runner``, ``threads`` and ``flight`` (a step on a device, several under
way). It imports nothing else of the engine; ``engine.loop`` is the thread that steps.
"""
