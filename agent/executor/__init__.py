"""The agent's hands: repairs that the controller orders, each a procedure with its steps on disk before they are taken.

Reading order: ``journal`` (what is on disk), ``work`` (what a procedure is given), ``reset`` and ``reboot`` (the
procedures), ``recovery`` (what a new agent makes of an unfinished one), ``validation``, ``executor`` (the loop).
"""
