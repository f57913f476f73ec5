"""The constant classifier that noised labels elect: what every method must beat."""
