"""A toy that is no protocol: three classes, two parties, no projection."""
