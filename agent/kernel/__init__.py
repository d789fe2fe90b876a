"""The kernel log as typed records: every form of line that NVIDIA's drivers and the PCIe core have printed.

Pure: text in, ``Parsed`` out. ``prefix`` tells how a line was recorded, ``lines`` what kind it is, ``payloads`` and
``switch``, ``bus`` what its text carries, ``parser`` joins the lines that belong to one record.
"""
