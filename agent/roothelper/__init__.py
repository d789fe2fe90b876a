"""The root helper: the one small program of ours that may do harm, and the only one that runs as root.

It knows a fixed list of verbs with typed arguments (``requests``), speaks on a unix socket with one user alone
(``server``), counts what it does (``limits``), and checks by itself that nobody's work is in the way. It has no
network, starts no shell, and takes no program, path or unit name from its callers. Reading order: ``requests``,
``server``, ``duty`` (what is allowed), ``machine`` (what a node is to it), ``real``, ``virtual``; of replicas as units
of systemd ``unit`` (what becomes of a start that was asked for), ``replicas`` (what is allowed), ``systemd``.
"""
