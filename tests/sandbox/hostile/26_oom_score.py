# Makes itself the last that the kernel kills for memory.
#
# /// expect
# seen = { lower = 13, higher = 0 }
# at.userns.seen = { lower = 30, higher = 30 }
# at."user:userns".seen = { lower = 30, higher = 30 }
# ///
from pathlib import Path

from probe import attempt, report

score = Path("/proc/self/oom_score_adj")
report(lower=attempt(score.write_text, "-1000"), higher=attempt(score.write_text, "500"))
