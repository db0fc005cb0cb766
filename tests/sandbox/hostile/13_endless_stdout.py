# Prints without end.
#
# /// expect
# status = "output_limit"
# text = ["first\nxxx", "bytes cut]"]
# ///
import os

os.write(1, b"first\n")
while True:
    os.write(1, b"xxxxxxx\n" * 1024)
