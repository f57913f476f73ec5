"""Published tables: features with public bounds, parsing, checks, policies."""
