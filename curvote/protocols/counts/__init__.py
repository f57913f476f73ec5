"""Naive Bayes from noised counts: each client tells its bin of one number."""
