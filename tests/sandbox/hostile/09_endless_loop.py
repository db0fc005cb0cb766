# Loops without end.
#
# /// expect
# status = "timeout"
# limits = { cpu_s = 1 }
# ///
while True:
    pass
