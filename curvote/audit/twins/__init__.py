"""Broken twins of mechanisms and messages; the audit must catch each one."""
