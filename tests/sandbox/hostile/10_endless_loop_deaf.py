# Loops without end and ignores the signal that warns of the CPU limit.
#
# /// expect
# status = "timeout"
# limits = { cpu_s = 1 }
# ///
import signal

signal.signal(signal.SIGXCPU, signal.SIG_IGN)
while True:
    pass
