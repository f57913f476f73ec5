"""Transfer between servers that hold raw records, each trusted in its own way."""
