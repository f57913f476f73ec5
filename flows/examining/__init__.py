"""What `curvote doctor` looks at, a file for each kind of thing."""
