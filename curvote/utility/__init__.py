"""How often a classifier's answer survives noise, and what to send instead."""
