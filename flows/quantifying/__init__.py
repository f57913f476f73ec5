"""`curvote utility`: from what was asked to a setting, and from rows to words."""
