"""One module a command; each has the click command as ``command``."""
