"""What is sent of a record, how it is split and noised, and how it is read."""
