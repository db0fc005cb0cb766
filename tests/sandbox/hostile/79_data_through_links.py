# Writes to the data through links and open folders.
#
# /// expect
# seen = { errnos = [30] }
# not_run = ["weak"]
# ///
import os

from probe import attempt, report

os.symlink("/data", "d")
folder = os.open("/data", os.O_RDONLY | os.O_DIRECTORY)
report(
    errnos=sorted(
        {
            attempt(os.open, "d/new", os.O_WRONLY | os.O_CREAT),
            attempt(os.open, "rows.csv", os.O_WRONLY, dir_fd=folder),
            attempt(os.unlink, "rows.csv", dir_fd=folder),
            attempt(os.chmod, "d/rows.csv", 0o777),
        }
    )
)
