"""VEC: reproduction of Zhao et al., label LDP by vectors, and comparisons beyond it."""
