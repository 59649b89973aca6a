// Everything can be done from the keyboard.

import { buttonOf, h, para } from "./dom.js";
import { after, before } from "./focus.js";

const HERE = [1.5, 1 / 1.5]; // how far a key zooms, in and out
const FAR = 60; // pixels that a key moves the picture; with Shift four times as many

// The keys: their descriptions, and for each key its action.
const KEYS = [
  ["zoom in and out", {
    w: (app) => app.zoomHere(HERE[0]), s: (app) => app.zoomHere(HERE[1]),
    "+": (app) => app.zoomHere(HERE[0]), "-": (app) => app.zoomHere(HERE[1]),
  }],
  ["move the picture (Shift: faster)", {
    a: ({ view }, far) => view.pan(far, 0), d: ({ view }, far) => view.pan(-far, 0),
    "←": ({ view }, far) => view.pan(far, 0), "→": ({ view }, far) => view.pan(-far, 0),
    "↑": ({ view }, far) => view.pan(0, far), "↓": ({ view }, far) => view.pan(0, -far),
  }],
  ["lanes lower, higher", {
    "[": ({ view }) => view.stretch(1 / 1.25, view.height / 2),
    "]": ({ view }) => view.stretch(1.25, view.height / 2),
  }],
  ["have the selection, or what is measured, fill the picture", { f: (app) => app.fill() }],
  ["measure the selection; or drag along the time, or with Shift", {
    m: (app) => app.measure(app.view.selected && app.extent(app.view.selected)),
  }],
  ["show everything", { 0: (app) => app.everything() }],
  ["next, previous finding", { n: (app) => stepFinding(app, 1), p: (app) => stepFinding(app, -1) }],
  ["next, previous activation or event", {
    j: (app) => stepNode(app, 1), k: (app) => stepNode(app, -1),
  }],
  ["to what led to it, to what it led to", {
    h: (app) => follow(app, before), l: (app) => follow(app, after),
  }],
  ["measure nothing, select nothing", {
    Esc: (app) => (app.view.measured ? app.measure(null) : app.select(null)),
  }],
  ["raw or cleaned", { c: (app) => app.setCleaned(!app.view.cleaned) }],
  ["time or records", { t: (app) => app.setAxis(app.view.axis === "wall" ? "logical" : "wall") }],
  ["fold what repeats", { r: (app) => app.toggleFold() }],
  ["show, or fold, lanes without a part in the finding", { v: (app) => app.toggleLanes() }],
  ["play", { space: (app) => app.timebar.toggle() }],
  ["one record back, on", {
    ",": (app) => app.timebar.step(-1), ".": (app) => app.timebar.step(1),
  }],
  ["the first moment, all of it", {
    Home: (app) => app.setAt(0), End: (app) => app.setAt(null),
  }],
  ["findings, details, overview", {
    1: (app) => app.tabs.show("findings"),
    2: (app) => app.tabs.show("details"),
    3: (app) => app.tabs.show("overview"),
  }],
  ["search", { "/": (app) => app.search.focus() }],
  ["dark or light", { x: (app) => app.toggleTheme() }],
  ["this list", { "?": (app, far, dialog) => dialog.showModal() }],
];
// The browser's names of keys that have another name here.
const NAMES = {
  arrowleft: "←", arrowright: "→", arrowup: "↑", arrowdown: "↓",
  escape: "Esc", " ": "space", home: "Home", end: "End", "=": "+",
};

export function startKeys(app, dialog) {
  const actions = Object.assign({}, ...KEYS.map(([, keys]) => keys));
  dialog.append(
    h("h2", { text: "Keys" }),
    h("dl",
      KEYS.flatMap(([what, keys]) => [
        h("dt",
          Object.keys(keys).flatMap((key) => [h("kbd", { text: key.length > 1 ? key : key.toUpperCase() }), " "]),
        ),
        h("dd", { text: what }),
      ]),
    ),
    para("lead", "The wheel zooms; with Shift it moves along, with Alt lanes grow."),
    h("p", buttonOf("Close", () => dialog.close())),
  );
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || dialog.open) return;
    const inField = e.target.closest("input:not([type=range]), textarea, details .sheet");
    if (inField && e.key !== "Escape") return;
    const isOwn = e.target.closest("button, summary, [role=tab], [role=option], .panel");
    if (isOwn && ([" ", "Enter"].includes(e.key) || e.key.startsWith("Arrow"))) return;
    const key = e.key.toLowerCase(),
      act = actions[NAMES[key] ?? key];
    if (!act) return;
    e.preventDefault();
    act(app, e.shiftKey ? 4 * FAR : FAR, dialog);
  });
}

/** The finding after or before the one that is selected. */
function stepFinding(app, step) {
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
