"""Automatic choice: the system that public facts call for."""
