"""Page sections of a quantification before collection."""
