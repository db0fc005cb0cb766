"""Intervals, paired tests and ranks: pure functions, numbers in, small records out."""
