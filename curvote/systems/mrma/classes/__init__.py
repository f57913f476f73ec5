"""MRMA of several classes: each client answers for one class."""
