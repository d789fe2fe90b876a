"""What is wrong: conditions, incidents, suspects, and when to doubt ourselves instead."""
