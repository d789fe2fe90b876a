"""What the controller remembers, on SQLite or PostgreSQL: written by one task, in transactions that lose nothing."""
