"""System `utility`: agreement of a classifier under noise, before collection."""
