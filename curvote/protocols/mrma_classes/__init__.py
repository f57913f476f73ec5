"""MRMA of several classes, one against the rest: each client answers for one class."""
