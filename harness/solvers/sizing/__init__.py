"""Solvers that size circuits: a loop with the model, optimisers without one, and both together."""
