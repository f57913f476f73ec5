"""Engines: exact, bracketed or drawn answers, by kind of classifier."""
