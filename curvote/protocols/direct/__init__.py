"""One vector a client, feature and label in one: their mean is the classifier."""
