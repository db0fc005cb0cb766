"""Rows of the pages: plain typed records that the site and the static export both use."""
