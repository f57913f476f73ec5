"""Prefect's server: start, restart, access and database."""
