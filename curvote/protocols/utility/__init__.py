"""The system that quantifies, before collection, what noise costs a classifier."""
