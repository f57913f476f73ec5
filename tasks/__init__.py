"""Prefect tasks of stages: retries, timeouts, tags and run names."""
