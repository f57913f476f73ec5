"""Classifiers that answer the class of the largest score, each of known form."""
