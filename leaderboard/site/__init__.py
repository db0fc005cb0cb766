"""The static site: plain pages that open from disk."""
