"""The programs are never imported: not by a test, and not to look for examples in them."""

collect_ignore_glob = ["[0-9][0-9]_*.py", "probe.py", "suite.py"]
