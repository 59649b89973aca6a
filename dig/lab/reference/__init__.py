"""The importer of graphs that the paper's program stores.

`reference_nodes`: their nodes. `reconstruction`, `schedule`: from nodes to a log of records.
"""
