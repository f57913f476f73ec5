"""System `transfer`: one noised release of each server, combined for a target."""
