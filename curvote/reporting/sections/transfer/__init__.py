"""What only pages on transfer between servers show."""
