"""The importer of graphs that the paper's program stores.

`reference_nodes`: the nodes. `reconstruction`, `record_order`: from nodes to a log of records.
"""
