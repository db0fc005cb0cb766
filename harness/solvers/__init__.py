"""From a sample to an output: generate, choose; and strategies that pick among several draws."""
