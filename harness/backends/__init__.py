"""One file per way of calling a model; `base` holds the protocol and the capabilities."""
