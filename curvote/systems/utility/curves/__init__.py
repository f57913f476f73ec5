"""System `utility_curves`: agreement for curves whose coefficients are noised."""
