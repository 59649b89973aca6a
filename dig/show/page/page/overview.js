// The run in numbers: sums, who sent how much to whom, and each agent's work.

import { note } from "./acts.js";
import { h, refill, svg } from "./dom.js";
import { FATES } from "./model.js";
import { whyItFailed } from "./diagnosis.js";
import { factsOf } from "./pieces.js";
import { number, seconds, weighed } from "./words.js";

const MOST_CELLS = 12; // agents in a table of cells; beyond, there is a graph of them
const MOST_EDGES = 300;
const MOST_LARGE = 9; // agents up to which there is room for large ones

export class Overview {
  constructor(app, element) {
    this.app = app;
    this.element = element;
    this.version = "";
  }

  update() {
    const { model, painter } = this.app;
    const version = [this.app.pace.version, model.head.note, this.app.live === null, painter.theme?.ground].join();
    if (version === this.version) return;
    this.version = version;
    const team = h("section", {}, h("h3", { text: "Who sent how many events to whom" }), this._matrix()),
      isMany = model.lanes.length - 1 > MOST_CELLS;
    refill(
      this.element,
      isMany && team,
      this._verdict(),
      whyItFailed(this.app),
      note(this.app),
      h("section", {}, h("h3", { text: "In numbers" }), this._numbers()),
      !isMany && team,
      h("section", {}, h("h3", { text: "Agents" }), this._agents()),
    );
  }

  _verdict() {
    const { task, cost } = this.app.model.head.answers ?? {};
    return task ? h("section", {}, factsOf({ task, cost })) : null;
  }

  _numbers() {
    const { model } = this.app;
    const fates = [0, 0, 0, 0];
    for (const edge of model.edges) if (edge.fate >= 0) fates[edge.fate] += 1;
    const counts = {
      agents: model.lanes.length - 1,
      activations: model.activations.length,
      events: model.events.length,
      records: model.t + 1,
      "on its clock": seconds(model.us),
      findings: model.findings.length,
      ...Object.fromEntries(
        Object.entries(weighed(model.findings))
          .filter(([, n]) => n)
          .map(([one, n]) => [one === "silenced" ? one : `${one}s`, n]),
      ),
      "healing steps": model.heals.length,
      ...Object.fromEntries(fates.map((n, i) => [`${FATES[i]} edges`, n])),
      ...Object.fromEntries(
        [...model.usage].slice(0, 6).map(([key, n]) => [key.replaceAll("_", " "), n]),
      ),
    };
    return h(
      "dl",
      { class: "numbers" },
      Object.entries(counts).map(([key, value]) =>
        h(
          "div",
          {},
          h("dt", { text: key }),
          h("dd", { text: typeof value === "number" ? number(value) : value }),
        ),
      ),
    );
  }

  _matrix() {
    const { lanes } = this.app.model;
    if (lanes.length - 1 <= MOST_CELLS) return h("div", { class: "matrix" }, this._table(lanes));
    return h(
      "div",
      { class: "matrix" },
      this._team(lanes),
      h("p", { class: "cut", text: "A click on an agent shows its lane alone, one on an edge what went there." }),
      this._busiest(lanes),
    );
  }

  _table(lanes) {
    const most = busiest(lanes);
    const head = h(
      "tr",
      {},
      h("th", { text: "" }),
      lanes
        .slice(1)
        .map((lane) => h("th", { scope: "col", title: lane.id }, h("span", { text: lane.id }))),
    );
    const body = lanes.map((from) =>
      h(
        "tr",
        {},
        h("th", { scope: "row", title: name(from), text: name(from) }),
        lanes.slice(1).map((to) => this._cell(from, to, from.sent.get(to.i) || 0, most)),
      ),
    );
    return h(
      "table",
      {
        class: lanes.length - 1 > MOST_LARGE ? "small" : "",
        "aria-label": "Events delivered, from each agent (rows) to each agent (columns)",
      },
      h("thead", {}, head),
      h("tbody", {}, body),
    );
  }

  _cell(from, to, n, most) {
    if (!n) return h("td", { class: "none" });
    const { app } = this,
      strength = 0.08 + 0.42 * Math.sqrt(n / most); // ink is legible on all of them
    const button = h("button", {
      type: "button",
      text: n > 999 ? "1k+" : String(n),
      title: `${name(from)} to ${to.id}: ${n}`,
      "data-pair": `${from.i},${to.i}`,
      onclick: () => app.selectPair(from, to),
    });
    button.style.background = `color-mix(in srgb, var(--reroute) ${Math.round(100 * strength)}%, var(--panel))`;
    return h("td", {}, button);
  }

  /** For many agents: a graph of them, with what went from one to another as an edge. */
  _team(lanes) {
    const { app } = this,
      { edges } = app.model,
      failed = new Set(),
      most = busiest(lanes);
    for (const { event, activation } of edges)
      if (activation.action === "error") failed.add(`${event.lane},${activation.lane}`).add(activation.lane);
    const at = ({ i }) => {
      const turn = (2 * Math.PI * i) / lanes.length - Math.PI / 2;
      return [200 + 165 * Math.cos(turn), 200 + 165 * Math.sin(turn)].map((n) => n.toFixed(1));
    };
    const parts = this._pairs(lanes).slice(0, MOST_EDGES).toReversed().map(({ from, to, n }) => {
      const [[x1, y1], [x2, y2]] = [at(from), at(to)],
        isBad = failed.has(`${from.i},${to.i}`),
        path = svg("path", {
          d: `M${x1},${y1}Q200,200 ${x2},${y2}`, class: isBad ? "failed" : "",
          "stroke-width": (1 + 4 * Math.sqrt(n / most)).toFixed(1),
        }, `${name(from)} to ${to.id}: ${n}${isBad ? ", with a failed turn" : ""}`);
      path.addEventListener("click", () => app.selectPair(from, to));
      return path;
    });
    const nodes = lanes.map((lane) => {
      const [cx, cy] = at(lane),
        circle = svg("circle", { cx, cy, r: lanes.length > 60 ? 3 : 6, class: failed.has(lane.i) ? "failed" : "" }, name(lane));
      if (lane.i) circle.addEventListener("click", () => app.only(lane));
      return circle;
    });
    const label = "A graph of the agents: an edge for what went from one to another, red where a turn failed";
    return svg("svg", { viewBox: "0 0 400 400", role: "img", "aria-label": label }, "", ...parts, ...nodes);
  }

  /** Who sent how much to whom, the most first. */
  _pairs(lanes) {
    return lanes
      .flatMap((from) => [...from.sent].map(([to, n]) => ({ from, to: lanes[to], n })))
      .sort((a, b) => b.n - a.n);
  }

  _busiest(lanes) {
    return h(
      "ul",
      { class: "rows", "aria-label": "Busiest pairs" },
      this._pairs(lanes).slice(0, 12).map(({ from, to, n }) =>
        h(
          "li",
          {},
          h("button", {
            class: "link what",
            type: "button",
            text: `${name(from)} → ${to.id}`,
            onclick: () => this.app.selectPair(from, to),
          }),
          h("span", { text: number(n) }),
        ),
      ),
    );
  }

  _agents() {
    const { app } = this,
      { model } = app;
    const total = Math.max(1, model.us);
    const row = (lane) =>
      h(
        "tr",
        {},
        h("td", {}, app.link(lane)),
        [
          number(lane.activations.length),
          `${Math.round((100 * lane.busyUs) / total)} %`,
          number(lane.waits),
          number(lane.events.length),
        ].map((text) => h("td", { text })),
      );
    return h(
      "table",
      { class: "agents" },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          ["agent", "turns", "busy", "waited", "sent"].map((text) =>
            h("th", { scope: "col", text }),
          ),
        ),
      ),
      h("tbody", {}, model.lanes.slice(1).map(row)),
    );
  }
}

/** The most events that went from one agent to another. */
function busiest(lanes) {
  return lanes.reduce((most, { sent }) => Math.max(most, ...sent.values()), 1);
}

function name(lane) {
  return lane.i === 0 ? "outside, healing" : lane.id;
}
