# Sleeps for 1,000 seconds.
#
# /// expect
# status = "timeout"
# reason = "on the clock"
# limits = { wall_s = 2 }
# ///
import time

time.sleep(1000)
