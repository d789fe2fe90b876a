"""Hardware knowledge as tables: Xids, SXids, NVLink 5 sub-codes, reset groups, named codes."""
