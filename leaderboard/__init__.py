"""The site: what the store carries, and nothing more.

Reads published snapshots, and the ends of journals for what runs right now; never the live database.
`data` holds the snapshot, `rows` asks it (one module a page), `charts` draw rows, `pages` put both on
the screen. Streamlit is imported in `app`, `ui` and `pages` only.
"""
