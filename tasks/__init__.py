"""The benchmarks that come with the project: one folder each, to be read from top to bottom."""
