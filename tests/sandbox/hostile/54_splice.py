# Floods stdout without copying.
#
# /// expect
# status = "output_limit"
# ///
import os

read, write = os.pipe()
while True:
    os.write(write, b"x" * 65536)
    os.splice(read, 1, 65536)
