"""One step a file, in order; a step that was released is never edited."""
