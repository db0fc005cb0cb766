"""Charts as pure functions: plain rows in, an Altair chart out; no store, no page, no network."""
