# Prints errors without end, and no line ends.
#
# /// expect
# status = "output_limit"
# ///
import os

while True:
    os.write(2, b"x" * 8192)
