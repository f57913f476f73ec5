"""Reports of clients joined with volunteers' public labelled records."""
