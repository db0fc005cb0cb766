"""Maker of the own items of Op-CAD and ProCAD: `python -m data.make.op_cad --help`."""
