"""Op-CAD: CAD programs written one operation at a time, judged by their solids."""
