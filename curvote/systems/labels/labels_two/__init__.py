"""Two rounds: half of the labels tell what is likely of the others (LP-2ST)."""
