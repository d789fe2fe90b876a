"""What the controller remembers: one SQLite file, written by one task, in transactions that lose nothing."""
