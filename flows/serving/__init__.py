"""What `curvote serve` is made of: children, schedules, their firing."""
