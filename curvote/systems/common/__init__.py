"""Parts that several systems share: checks, tables, stages and models."""
