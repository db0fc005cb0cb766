"""Getting small real models and data sets from their home, hash checked; see `sources` and `get`."""
