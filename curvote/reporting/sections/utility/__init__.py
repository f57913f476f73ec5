"""What a page shows of a quantification before collection."""
