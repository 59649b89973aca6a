"""`digmon graph`: the graph of a stored trace."""

from __future__ import annotations

from dig.errors import TraceError

from .app import app, print_result
from .options import AsJson, At, Cleaned, Salvage, Trace, recovered


@app.command()
def graph(
    file: Trace,
    cleaned: Cleaned = False,
    at: At = None,
    salvage: Salvage = False,
    as_json: AsJson = False,
) -> None:
    """Show the Dynamic Interaction Graph of a stored trace.

    With --json as networkx node-link data, with the edges under the key `edges`.
    """
    from dig.graph.views import GraphView
    from dig.show.outline import outline
    from dig.traces.journal.reader import read_graph

    recovered(file, salvage)
    whole = read_graph(file)
    if at is not None and at > whole.t:
        raise TraceError(file, None, f"there is no record {at}; the last one is {whole.t}")
    view = GraphView(whole, at, cleaned)
    print_result(as_json, view.node_link, lambda: outline(view))
