"""Pilot: a fifth of the clients say which of two rules is right for them."""
