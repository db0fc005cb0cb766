"""The families of own challenges, by category; `catalogue` joins them."""
