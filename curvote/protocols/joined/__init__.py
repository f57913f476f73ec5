"""Reports of clients, joined with the labelled records that volunteers made public."""
