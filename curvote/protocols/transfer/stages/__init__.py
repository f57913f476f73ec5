"""The stages of transfer between servers."""
