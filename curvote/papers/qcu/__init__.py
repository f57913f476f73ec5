"""QCU: reproduction of Zheng & Hu, how often a classifier's answer survives noise."""
