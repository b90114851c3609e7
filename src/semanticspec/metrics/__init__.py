"""Ratios are made here and nowhere else; everything before this counts."""
