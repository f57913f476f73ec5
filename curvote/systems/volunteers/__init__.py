"""Volunteers alone: a classifier of their public labelled records."""
