"""The commands of ``curvote``, thin: options in, words out."""
