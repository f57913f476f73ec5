"""Page sections of transfer between servers."""
