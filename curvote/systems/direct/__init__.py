"""Direct learning: a noised vector a client, whose mean is the classifier."""
