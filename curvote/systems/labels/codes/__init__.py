"""Codes of labels: encoders, codes, predictions of classes, and their efficiency."""
