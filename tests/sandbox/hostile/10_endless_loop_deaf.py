# Loops without end and ignores the signal that warns of the CPU limit.
#
# /// expect
# # killed by the kernel: on a busy machine its clock and the cgroup's differ, and why shows no more
# status = ["timeout", "crash"]
# limits = { cpu_s = 1 }
# ///
import signal

signal.signal(signal.SIGXCPU, signal.SIG_IGN)
while True:
    pass
