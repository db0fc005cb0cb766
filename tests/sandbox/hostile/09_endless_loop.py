# Loops without end.
#
# /// expect
# status = "timeout"
# reason = "1 CPU seconds"
# limits = { cpu_s = 1 }
# ///
while True:
    pass
