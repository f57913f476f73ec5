"""A pipeline as steps: what each reads, the key that names it, why it runs."""
