"""Several controllers on one database: the lease, the inbox, what each of them saw."""
