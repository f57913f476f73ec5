"""Decision stump: one number and threshold, chosen by noised answers."""
