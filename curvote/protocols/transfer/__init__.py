"""Servers that hold raw records release one object each; one of them learns."""
