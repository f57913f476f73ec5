"""What MLflow holds of runs, and the pages that show it."""
