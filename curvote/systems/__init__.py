"""Systems: complete ways from clients to a classifier, one folder each."""
