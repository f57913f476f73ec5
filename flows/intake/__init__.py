"""What stands around the intake's service: processes, answers, figures."""
