"""What measures solids: numpy, scipy and the CAD kernel only, so that it also runs inside a box."""
