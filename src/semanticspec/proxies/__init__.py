"""The embedded pair: synthetic reasoning problems with known truth, and two models trained on them."""
