"""The subset interpreter: klayout.db and the standard library only, so that it runs inside a box."""
