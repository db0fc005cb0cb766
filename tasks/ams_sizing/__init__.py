"""AMS-SizingBench: transistor sizes for analogue and mixed-signal circuits, judged by ngspice."""
