"""Quantification before collection for curves: their coefficients are noised."""
