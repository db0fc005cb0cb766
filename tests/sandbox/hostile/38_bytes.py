# Prints bytes that would clear a screen, set a title, hide or turn text.
#
# /// expect
# text = ["\\x1b[2J", "\\x1b]0;title\\x07", "a\\rb", "\\xff\\xfe", "\\x00", "\\u202e", "\\u2028"]
# ///
import os

os.write(1, b"\x1b[2J\x1b]0;title\x07a\rb\xff\xfe\0" + "\u202e\u2028".encode())
