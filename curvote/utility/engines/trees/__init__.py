"""Trees and their ensembles: exact answers, cell by cell of their thresholds."""
