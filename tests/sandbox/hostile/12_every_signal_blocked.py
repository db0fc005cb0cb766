# Ignores or blocks every signal and waits.
#
# /// expect
# status = "timeout"
# reason = "on the clock"
# limits = { wall_s = 2 }
# ///
import contextlib
import signal
import time

for number in range(1, 65):
    with contextlib.suppress(OSError, ValueError):
        signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
while True:
    time.sleep(1000)
