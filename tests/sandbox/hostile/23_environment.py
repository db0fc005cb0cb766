# Looks at its own environment.
#
# /// expect
# seen.names = ["HOME", "LANG", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PATH", "PYTHONHASHSEED"]
# ///
import os

from probe import report

report(names=sorted(os.environ))
print([value for name, value in os.environ.items() if name not in ("HOME", "PATH")])
