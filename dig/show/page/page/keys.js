// Everything can be done from the keyboard.

import { h } from "./dom.js";
import { after, before } from "./focus.js";

const HELP = [
  ["W S + −", "zoom in and out"],
  ["A D ← → ↑ ↓", "move the picture (Shift: faster)"],
  ["[ ]", "lanes lower, higher"],
  ["f", "have the selection, or what is measured, fill the picture"],
  ["m", "measure the selection; or drag along the time, or with Shift"],
  ["0", "show everything"],
  ["n p", "next, previous finding"],
  ["j k", "next, previous activation or event"],
  ["h l", "to what led to it, to what it led to"],
  ["Esc", "measure nothing, select nothing"],
  ["c", "raw or cleaned"],
  ["t", "time or records"],
  ["r", "fold what repeats"],
  ["v", "show, or fold, lanes without a part in the finding"],
  ["space", "play"],
  [", .", "one record back, on"],
  ["Home End", "the first moment, all of it"],
  ["1 2 3", "findings, details, overview"],
  ["/", "search"],
  ["x", "dark or light"],
  ["?", "this list"],
];

export function startKeys(app, dialog) {
  dialog.append(
    h("h2", { text: "Keys" }),
    h(
      "dl",
      {},
      HELP.flatMap(([keys, what]) => [
        h(
          "dt",
          {},
          keys.split(" ").flatMap((key) => [h("kbd", { text: key }), " "]),
        ),
        h("dd", { text: what }),
      ]),
    ),
    h("p", {
      class: "lead",
      text: "The wheel zooms; with Shift it moves along, with Alt lanes grow.",
    }),
    h("p", {}, h("button", { type: "button", text: "Close", onclick: () => dialog.close() })),
  );
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || dialog.open) return;
    const inField = e.target.closest("input:not([type=range]), details .sheet");
    if (inField && e.key !== "Escape") return;
    const isOwn = e.target.closest("button, summary, [role=tab], [role=option], .panel");
    if (isOwn && [" ", "Enter"].includes(e.key)) return;
    if (isOwn && e.key.startsWith("Arrow")) return;
    const act = actions(app, dialog, e)[e.key.toLowerCase()];
    if (!act) return;
    e.preventDefault();
    act();
  });
}

function actions(app, dialog, e) {
  const far = e.shiftKey ? 240 : 60,
    { view } = app;
  const closer = () => app.zoomHere(1.5),
    further = () => app.zoomHere(1 / 1.5),
    back = () => view.pan(far, 0),
    on = () => view.pan(-far, 0);
  return {
    w: closer,
    s: further,
    a: back,
    d: on,
    "+": closer,
    "=": closer,
    "-": further,
    arrowleft: back,
    arrowright: on,
    arrowup: () => view.pan(0, far),
    arrowdown: () => view.pan(0, -far),
    "[": () => view.stretch(1 / 1.25, view.height / 2),
    "]": () => view.stretch(1.25, view.height / 2),
    f: () => app.fill(),
    m: () => app.measure(view.selected && app.extent(view.selected)),
    0: () => view.fit(),
    n: () => stepFinding(app, 1),
    p: () => stepFinding(app, -1),
    j: () => stepNode(app, 1),
    k: () => stepNode(app, -1),
    h: () => follow(app, before),
    l: () => follow(app, after),
    escape: () => (view.measured ? app.measure(null) : app.select(null)),
    c: () => app.setCleaned(!view.cleaned),
    t: () => app.setAxis(view.axis === "wall" ? "logical" : "wall"),
    r: () => app.toggleFold(),
    v: () => app.toggleLanes(),
    " ": () => app.timebar.toggle(),
    ",": () => app.timebar.step(-1),
    ".": () => app.timebar.step(1),
    home: () => app.setAt(0),
    end: () => app.setAt(null),
    1: () => app.tabs.show("findings"),
    2: () => app.tabs.show("details"),
    3: () => app.tabs.show("overview"),
    "/": () => app.search.focus(),
    x: () => app.toggleTheme(),
    "?": () => dialog.showModal(),
  };
}

/** The finding after or before the one that is selected. */
export function stepFinding(app, step) {
  const shown = app.findings.shown();
  if (!shown.length) return;
  const at = shown.indexOf(app.view.selected);
  const next =
    at < 0 ? (step > 0 ? 0 : shown.length - 1) : (at + step + shown.length) % shown.length;
  app.select(shown[next]);
}

/** The next node in its lane, or in the run if nothing is selected. */
function stepNode(app, step) {
  const { selected } = app.view,
    { model } = app;
  if (!selected || selected.kind === "finding") {
    app.select(model.activations[0] ?? model.events[0] ?? null);
    return;
  }
  if (selected.kind === "agent") {
    app.select(selected.activations[0] ?? selected.events[0] ?? selected);
    return;
  }
  const lane = model.lanes[selected.lane];
  const all = [...lane.activations, ...lane.events].filter((one) => shows(app.view, one));
  all.sort((a, b) => a.t - b.t);
  const next = all[all.indexOf(selected) + step];
  if (next) app.select(next);
}

function shows(view, node) {
  return node.kind === "event" ? view.showsEvent(node) : view.showsActivation(node);
}

function follow(app, way) {
  const { selected, cleaned } = app.view;
  if (!selected || !["event", "activation"].includes(selected.kind)) return;
  const next = way(selected, cleaned).filter((one) => shows(app.view, one));
  if (next.length) app.select(way === before ? next[next.length - 1] : next[0]);
}
