# Sends a file to stdout without end.
#
# /// expect
# status = "output_limit"
# ///
import os

with open("block", "wb") as file:
    file.write(b"x" * (1 << 20))
handle = os.open("block", os.O_RDONLY)
while True:
    os.sendfile(1, handle, 0, 1 << 20)
