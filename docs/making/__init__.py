"""Pages that are made from the code by each build, and the check of what was built."""
