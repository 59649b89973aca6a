// The run in numbers: sums, who sent how much to whom, and each agent's work.

import { note } from "./acts.js";
import { buttonOf, h, Panel, para, refill, svg } from "./dom.js";
import { FATES } from "./model.js";
import { whyItFailed } from "./diagnosis.js";
import { factsOf, table } from "./pieces.js";
import { number, seconds, weighed } from "./words.js";

const MOST_EDGES = 300;
const MOST_NAMED = 13; // lanes with their names in the graph
const MOST_PAIRS = 40;

export class Overview extends Panel {
  update() {
    const { model, painter } = this.app;
    const version = [this.app.pace.version, model.head.note, this.app.live === null, painter.theme?.ground].join();
    if (!this.isOther(version)) return;
    refill(
      this.element,
      h("section", h("h3", { text: "Who sent how many events to whom" }), this._matrix()),
      this._verdict(),
      whyItFailed(this.app),
      note(this.app),
      h("section", h("h3", { text: "In numbers" }), this._numbers()),
      h("section", h("h3", { text: "Agents" }), this._agents()),
    );
  }

  _verdict() {
    const { task, cost } = this.app.model.head.answers ?? {};
    return task ? h("section", factsOf({ task, cost })) : null;
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
        Object.entries(weighed(model.findings)).map(([one, n]) => [one === "silenced" ? one : `${one}s`, n]),
      ),
      "healing steps": model.heals.length,
      ...Object.fromEntries(fates.map((n, i) => [`${FATES[i]} edges`, n])),
      ...Object.fromEntries(
        [...model.usage].slice(0, 6).map(([key, n]) => [key.replaceAll("_", " "), n]),
      ),
    };
    return h("dl.numbers",
      Object.entries(counts).map(([key, value]) =>
        h("div",
          h("dt", { text: key }),
          h("dd", { text: typeof value === "number" ? number(value) : value }),
        ),
      ),
    );
  }

  _matrix() {
    const { lanes } = this.app.model;
    return h("div.matrix",
      this._team(lanes),
      para("cut", "A click on an agent shows its lane alone, one on an edge what went there."),
      this._busiest(lanes),
    );
  }

  /** A graph of the agents, with what went from one to another as an edge. */
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
    const isSmall = lanes.length <= MOST_NAMED,
      names = (isSmall ? lanes : []).map((lane) =>
        svg("text", { x: at(lane)[0], y: at(lane)[1] - 10 }, "", name(lane).slice(0, 18)));
    const label = "A graph of the agents: an edge for what went from one to another, red where a turn failed";
    return svg("svg", { viewBox: "-40 0 480 400", role: "img", "aria-label": label }, "", ...parts, ...nodes, ...names);
  }

  /** Who sent how much to whom, the most first. */
  _pairs(lanes) {
    return lanes
      .flatMap((from) => [...from.sent].map(([to, n]) => ({ from, to: lanes[to], n })))
      .sort((a, b) => b.n - a.n);
  }

  _busiest(lanes) {
    return h("ul.rows", { "aria-label": "Busiest pairs" },
      this._pairs(lanes).slice(0, MOST_PAIRS).map(({ from, to, n }) =>
        h("li",
          buttonOf(`${name(from)} → ${to.id}`, () => this.app.selectPair(from, to), { class: "link what" }),
          h("span", { text: number(n) }),
        ),
      ),
    );
  }

  _agents() {
    const { model } = this.app,
      total = Math.max(1, model.us);
    const rows = model.lanes.slice(1).map((lane) => [
      this.app.link(lane),
      number(lane.turns),
      `${Math.round((100 * lane.busyUs) / total)} %`,
      number(lane.waits),
      number(lane.events.length),
    ]);
    return table("agents", ["agent", "turns", "busy", "waited", "sent"], rows);
  }
}

/** The most events that went from one agent to another. */
function busiest(lanes) {
  return lanes.reduce((most, { sent }) => Math.max(most, ...sent.values()), 1);
}

function name(lane) {
  return lane.i === 0 ? "outside, healing" : lane.id;
}
