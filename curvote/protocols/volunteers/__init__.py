"""What volunteers alone would give: a classifier of their public, labelled records."""
