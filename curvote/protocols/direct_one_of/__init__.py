"""A class and a direction in one answer: 1-of-K, for many classes at large epsilon."""
