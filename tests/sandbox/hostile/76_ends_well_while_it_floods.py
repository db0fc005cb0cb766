# Ends with code 0 while a child still prints.
#
# /// expect
# status = ["ok", "output_limit"]
# ///
import os

if os.fork() == 0:
    while True:
        os.write(1, b"x" * 4096)
os._exit(0)
