"""What noise does to a distribution: the reports beside the records they came from."""
