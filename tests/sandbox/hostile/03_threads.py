# Starts threads without end.
#
# /// expect
# seen = { made = "0..46", error = "RuntimeError" }
# not_run = ["user:limits"]
# ///
import threading
import time

from probe import attempt, report

made = 0
while made < 300:
    error = attempt(threading.Thread(target=time.sleep, args=(1000,), daemon=True).start)
    if error:
        break
    made += 1
report(made=made, error=error)
