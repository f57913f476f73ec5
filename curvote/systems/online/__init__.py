"""MRMA on clients who keep arriving (section 3.5): each arrival updates the last."""
