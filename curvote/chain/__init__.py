"""Language of every pipeline: plain values that say what a system is."""
