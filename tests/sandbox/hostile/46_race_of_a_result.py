# Swaps a result between a file and a link to a host file, again and again.
#
# /// expect
# status = "timeout"
# limits = { wall_s = 2 }
# collect = ["result"]
# files = "any"
# ///
import os

from probe import hints

while True:
    for name in ("plain", "link"):
        if name == "plain":
            open(name, "w").close()
        else:
            os.symlink(hints["file"], name)
        os.rename(name, "result")
