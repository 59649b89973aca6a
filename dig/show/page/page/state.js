// The state of the page, as plain values: for programs that look at it.

/** A snapshot of the page. */
export function state(app) {
  const { model, view, painter, layout } = app;
  const { selected } = view;
  return {
    ready: app.isReady,
    live: app.live,
    rows: model.rows,
    t: model.t,
    counts: {
      agents: model.lanes.length - 1,
      events: model.events.length,
      activations: model.activations.length,
      edges: model.edges.length,
      findings: model.findings.length,
      heals: model.heals.length,
    },
    failed: [...model.failed.keys()],
    axis: view.axis,
    graph: view.cleaned ? "cleaned" : "raw",
    at: view.at,
    folded: view.folded,
    folds: layout.axis.folds.length,
    repeats: model.repeats.found.length,
    window: [view.from, view.place(view.width)],
    end: layout.axis.end,
    scale: view.scale,
    lane: view.laneHeight,
    top: view.top,
    fitted: view.fitted,
    measured: view.measured,
    lanes: view.order.map((lane) => lane.id),
    selected: selected ? { kind: selected.kind, id: selected.id } : null,
    focus: view.focus ? [...view.focus].map((node) => node.id).sort() : null,
    hops: view.hops,
    hidden: Object.fromEntries(
      Object.entries(view.hidden).map(([key, names]) => [key, [...names]]),
    ),
    tab: app.tabs.shown,
    theme: document.documentElement.dataset.theme,
    playing: app.timebar.playing,
    found: app.search.total,
    drawn: { ...painter.drawn },
    frameMs: painter.frameMs,
    firstMs: painter.firstMs,
    frames: painter.frames,
  };
}
