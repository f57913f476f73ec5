"""Parts of a run's page that only some systems have; they name them by module."""
