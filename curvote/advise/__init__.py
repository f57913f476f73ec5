"""Theory's word before anything is released: variances, drift, and a planner."""
