"""Two rounds of noised directions: the first whitens what the others report."""
