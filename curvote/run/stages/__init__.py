"""Stages that every protocol shares: ingest and project."""
