"""Data sets: published files, simulations and users' own tables of clients."""
