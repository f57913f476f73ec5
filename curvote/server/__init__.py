"""What an untrusted server may run: it sees reports and vote counts, nothing else."""
