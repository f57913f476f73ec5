"""Users' own files: schemas, readers in blocks, cards and starter pipelines."""
