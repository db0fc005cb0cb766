# Takes a higher priority and real-time scheduling.
#
# /// expect
# seen = { nice = 1, realtime = 1, io = 1 }
# ///
import os

from probe import attempt, report, syscall

report(
    nice=attempt(os.nice, -5),
    realtime=attempt(os.sched_setscheduler, 0, os.SCHED_FIFO, os.sched_param(1)),
    io=syscall(251, 1, 0, 1 << 13),
)
