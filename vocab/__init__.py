"""The words of Corral: frozen types and tables that every room shares.

Nothing here does I/O, reads a clock or imports another room. Times are numbers in seconds since the
epoch (UTC) unless a name says otherwise; units stand in the names; ``None`` is *not known*.
"""
