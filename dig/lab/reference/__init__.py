"""The importer of graphs that the paper's program stores.

`reference`: from JSON to nodes (`reference_nodes`). `reconstruction`, `record_order`: from nodes
to a log of records.
"""
