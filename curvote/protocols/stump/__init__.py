"""One number and one threshold: of all, those that noised answers find best."""
