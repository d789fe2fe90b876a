"""Checks of a GPU: what is looked at on purpose, before it takes work again.

``baseline`` needs nothing but readings. Checks that run something on the GPU go beside it.
"""
