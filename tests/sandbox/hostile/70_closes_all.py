# Closes every descriptor that it has and ends.
#
# /// expect
# status = "ok"
# ///
import os

os.closerange(0, 1024)
os._exit(0)
