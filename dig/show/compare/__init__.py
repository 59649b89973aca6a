"""Two runs: are they the same behaviour, and where do they part?

`golden`: a behaviour as a file; `difference`: what differs; `side_by_side`: in lines.
"""
