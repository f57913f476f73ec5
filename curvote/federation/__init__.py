"""Many servers: each learns on its own, they exchange classifiers, clients judge."""
