"""A run as a picture for a paper: SVG by our own writer, PNG and PDF by matplotlib.

- `drawing`: the whole picture with its legend, and its file. `source`: the run. `selection`: the
  part of it to draw. `layout`: the positions of nodes.
- `graph_panel`, `timeline`: the two panels, as shapes. `nodes`: kinds and titles of nodes.
  `palette`: colours and marks. `occupancy`: free places for labels.
- `scene`: the shapes. `svg`, `raster`: the two back ends, which know nothing but shapes.
"""
