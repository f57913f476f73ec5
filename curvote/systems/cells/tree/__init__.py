"""Decision tree: a public grid whose leaves learn from noised answers."""
