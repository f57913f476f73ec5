"""What can be known about a classifier's answers, by the kind of classifier."""
