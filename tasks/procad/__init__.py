"""ProCAD: unclear descriptions of parts, clarified by questions before they are built."""
