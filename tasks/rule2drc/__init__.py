"""Rule2DRC: design rules in words, decks in KLayout's language."""
