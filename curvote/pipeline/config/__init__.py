"""Configuration of pipelines: pipelines.yaml is parsed, resolved and checked."""
