"""Audit subject of transfer: neighbours are tables that differ in one record."""
