"""Published data sets, a module each."""
