"""Locally private gradient descent: one clipped gradient a client."""
