"""Effect of noise on a distribution: reports beside their records."""
