"""Intake of a server: which envelopes are accepted, and where they are kept."""
