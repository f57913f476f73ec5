"""References: the constant majority classifier, and learning without privacy."""
