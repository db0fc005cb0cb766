# Runs programs that make their user root.
#
# /// expect
# seen = { su = false, mount = false, privileges = 1, own = true }
# open = ["user:limits"]
# ///
import os
import shutil
import subprocess

from probe import libc, report


def works(*command):
    quiet = subprocess.DEVNULL
    return subprocess.run(command, stdin=quiet, stdout=quiet, stderr=quiet).returncode == 0


shutil.copy("/usr/bin/id", "id")
os.chmod("id", 0o6755)
said = subprocess.run(["./id", "-u"], capture_output=True, text=True).stdout
report(
    su=works("su", "-c", "true"),
    mount=works("mount", "-t", "tmpfs", "none", "/mnt"),
    privileges=libc.prctl(39, 0, 0, 0, 0),
    own=int(said) == os.getuid(),
)
