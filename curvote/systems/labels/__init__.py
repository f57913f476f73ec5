"""Labels are private, features are not: one noised code of each label, once."""
