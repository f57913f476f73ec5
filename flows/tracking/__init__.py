"""MLflow tracking of runs, and the pages that show it."""
