"""The architectures, one a file: how parameters begin, and what they make of images.

``begin(rng, shape, n_classes, width)`` returns parameters and running statistics;
``apply(params, stats, x, key)`` returns outputs (n, K) and the statistics after them:
``key`` is for what is drawn in training, None where the network is in use.
"""
