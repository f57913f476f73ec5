"""A public recursive grid, whose leaves learn their class from noised answers."""
