# Raises its own limits.
#
# /// expect
# seen = { raised = [] }
# ///
import resource

from probe import attempt, report

names = ["AS", "CPU", "FSIZE", "NOFILE", "NPROC", "CORE", "MEMLOCK"]
raised = []
for name in names:
    number = getattr(resource, f"RLIMIT_{name}")
    soft, hard = resource.getrlimit(number)
    if not attempt(resource.setrlimit, number, (soft, hard + 1)):
        raised.append(name)
report(raised=raised)
