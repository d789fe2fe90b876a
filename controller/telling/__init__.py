"""What watches, scrapes and charts are told of what was decided."""
