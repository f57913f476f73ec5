"""Front end of utility on the command line."""
