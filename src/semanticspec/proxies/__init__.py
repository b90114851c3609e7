"""The embedded pair: synthetic problems with known truth, and two models trained on them."""
