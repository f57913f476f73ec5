"""Agreement of a classifier's answers with and without noise, and what to send."""
