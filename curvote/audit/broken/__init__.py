"""A gallery of mechanisms that break their promise; the audit must catch each one."""
