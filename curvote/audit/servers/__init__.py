"""The audit of releases about tables: neighbours are tables that differ in a record."""
