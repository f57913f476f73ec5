"""Engines of classifiers that answer the class of the largest score."""
