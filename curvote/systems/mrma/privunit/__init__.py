"""MRMA whose training clients send one noised direction instead of a noised pair."""
