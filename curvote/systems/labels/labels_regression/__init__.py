"""Numbers are private, features are not: one noised number of each client, once."""
