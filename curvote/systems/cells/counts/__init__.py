"""Naive Bayes of noised counts: each client tells the bin of one number."""
