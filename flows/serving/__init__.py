"""Parts of `curvote serve`: children, schedules and scheduled runs."""
