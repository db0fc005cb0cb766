"""Our own reference solutions: one a family, each a text that also runs alone in an agent's box.

Every module has ``solve(public, connect) -> flag``: `public` holds the public files by name, `connect`
opens a `Tube` to the server (never called for a static challenge). It sees nothing else.
"""
