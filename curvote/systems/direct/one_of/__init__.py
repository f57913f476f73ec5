"""Direct learning by 1-of-K: a class and a direction in one answer."""
