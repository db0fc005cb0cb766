"""The script that Streamlit runs, in a folder of its own.

Beside a folder named ``pages`` Streamlit takes its files for pages of an older kind, and adds the
script's folder to the import path.
"""
