"""Reading and checking pipelines.yaml."""
