"""Direct learning in two rounds: the first whitens the second."""
