"""Releases of production: counted before they are drawn, drawn once."""
