"""The chains, readable from top to bottom; schedules; the command line."""
