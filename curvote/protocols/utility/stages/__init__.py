"""The stages of a quantification before collection."""
