"""Prefect flow of all pipelines, its schedules, its server and MLflow tracking."""
