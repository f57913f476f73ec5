"""One Prefect task for each stage: retries, timeouts, tags and run names, no work."""
