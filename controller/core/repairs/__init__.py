"""A fault's way: hold, drain, repair, validation, probation, release; and its undoing."""
