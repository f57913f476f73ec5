"""Several servers hold raw records; each releases one object, and one of them learns."""
