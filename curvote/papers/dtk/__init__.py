"""DTK: reproduction of Auddy, Cai & Chakraborty, transfer between servers."""
