# Loops without end.
#
# /// expect
# # killed by the kernel: on a busy machine its clock and the cgroup's differ, and why shows no more
# status = ["timeout", "crash"]
# limits = { cpu_s = 1 }
# ///
while True:
    pass
