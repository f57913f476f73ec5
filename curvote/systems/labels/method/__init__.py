"""Private labels of records whose features are public."""
