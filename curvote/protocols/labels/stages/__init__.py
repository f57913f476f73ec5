"""The stages of private labels."""
