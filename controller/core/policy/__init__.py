"""What may be done: the rules in force, their levels, pauses, budgets and what must be asked first."""
