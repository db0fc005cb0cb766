"""What judging CAD programs costs: `python bench/op_cad.py`.

Bars: 0.25 CPU s an item for a real part on a warm pool, 200 items on 2 cores within 2 minutes.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from statistics import median

from harness.core.task import TaskRequest, make_task
from harness.core.types import Output, Sample
from scorers.op_cad.scorer import op_cad


def main() -> None:
    """Measure and print."""
    made = make_task("op_cad/step", TaskRequest())
    samples = list(made.samples)[::2][:200]
    scorer = op_cad(pictures="no")
    scorer(samples[0], Output(text="".join(made.gold_texts(samples[0]))))  # the processes start
    began = time.perf_counter()

    def judge(sample: Sample) -> float:
        start = time.perf_counter()
        score = scorer(sample, Output(text="".join(made.gold_texts(sample))))
        assert score.value == 1.0, score.explanation
        return time.perf_counter() - start

    with ThreadPoolExecutor(scorer.at_once) as threads:
        walls = list(threads.map(judge, samples))
    wall = time.perf_counter() - began
    scorer.close()
    print(
        f"{len(samples)} steps, every gold program right: {wall:.1f} s with {scorer.at_once} at once (bar 120)"
    )
    print(f"median {median(walls) * 1000:.0f} ms of wall an item, truth and measuring included")
    busy = scorer.at_once * wall / len(samples)
    print(
        f"at most {busy:.3f} CPU s an item, all cores counted as busy (bar 0.25 for the program alone)"
    )


if __name__ == "__main__":
    main()
