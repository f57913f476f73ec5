"""Votes about random directions, without any training."""
