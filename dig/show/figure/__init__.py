"""A run as a picture for a paper: SVG by our own writer, PNG and PDF by matplotlib.

- `drawing`: the picture as a whole, and its file. `source`: what is read. `selection`: which part
  of it is drawn. `layout`: where nodes stand.
- `graph_panel`, `timeline`, `legend`: the three parts, as shapes; `nodes`, `palette` and `room`
  help them.
- `scene`: the shapes. `svg`, `raster`: the two back ends, which know nothing but shapes.
"""
