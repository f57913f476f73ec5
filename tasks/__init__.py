"""Prefect tasks of stages: retries, tags and run names."""
