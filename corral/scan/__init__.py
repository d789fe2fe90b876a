"""``corral scan``: kernel logs in any form, through the same parser and judge as the agent.

``files`` opens and cuts into entries, ``stamps`` finds their time, ``judged`` runs the judge over one file, ``table``
prints for people, ``run`` puts them together. Memory does not grow with the size of a file.
"""

from corral.scan.run import scan

__all__ = ["scan"]
