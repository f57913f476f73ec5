"""Ground of the house: errors, validation, entropy, privacy values, durable files."""
