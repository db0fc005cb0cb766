# Opens a FIFO that nobody writes to.
#
# /// expect
# status = "timeout"
# reason = "on the clock"
# limits = { wall_s = 2 }
# ///
import os

os.mkfifo("fifo")
os.open("fifo", os.O_RDONLY)
