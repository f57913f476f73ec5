"""A user's own files: reading in blocks, everything that is wrong at once."""
