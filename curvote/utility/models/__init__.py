"""Models that somebody gives: loaded safely, and checked before anything is asked."""
