"""Adapters: Corral closes nodes and ends replicas through whoever manages them.

The core decides (``core.closing``, ``core.owners``) and gives orders; ``controller.outward.keeper`` carries them to an
``Adapter`` and tells the core what its manager says. An order stands in the store until it is seen done, so a crash
at any moment loses none; that nothing new comes of carrying it out twice is each adapter's promise.
"""
