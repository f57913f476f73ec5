"""Simulated data sets, a module each."""
