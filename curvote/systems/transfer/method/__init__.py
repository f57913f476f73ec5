"""Transfer between servers that hold raw records: one noised release of each."""
