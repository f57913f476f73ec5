"""Checks of a message that need no system: subjects, laws, residuals, examples."""
