"""Learning without privacy: a comparison for studies."""
