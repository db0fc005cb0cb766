"""AICrypto, capture the flag: challenges that an agent breaks with tools in a box."""
