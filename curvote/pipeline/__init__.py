"""Pipelines as data: configuration, plan, store, releases, execution and records."""
