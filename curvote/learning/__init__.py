"""Server side learning: all that an untrusted server runs on reports and votes."""
