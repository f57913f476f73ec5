"""Prefect's server: started, guarded, asked, closed to strangers."""
