# Writes to settings of the kernel.
#
# /// expect
# seen = { worked = 0 }
# ///
import os

from probe import attempt, report

names = ["kernel/core_pattern", "kernel/hostname", "vm/drop_caches", "user/max_user_namespaces"]
paths = [f"/proc/sys/{name}" for name in names] + ["/proc/sysrq-trigger", "/proc/irq/0/x"]
errnos = [attempt(os.open, path, os.O_WRONLY) for path in paths]
report(worked=errnos.count(0))
