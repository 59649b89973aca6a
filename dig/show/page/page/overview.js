// The run in numbers: sums, who sent how much to whom, and each agent's work.

import { note } from "./acts.js";
import { h, refill } from "./dom.js";
import { FATES } from "./model.js";
import { whyItFailed } from "./diagnosis.js";
import { factsOf } from "./pieces.js";
import { number, seconds, weighed } from "./words.js";

const MOST_CELLS = 24; // agents in a table of cells; beyond, the matrix is a picture
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
    refill(
      this.element,
      this._verdict(),
      whyItFailed(this.app),
      note(this.app),
      h("section", {}, h("h3", { text: "In numbers" }), this._numbers()),
      h("section", {}, h("h3", { text: "Who sent how many events to whom" }), this._matrix()),
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
    const caption =
      "A row for each sender (the first: outside and healing), a column for each recipient.";
    return h(
      "div",
      { class: "matrix" },
      this._picture(lanes),
      h("p", { class: "cut", text: caption }),
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

  /** For many agents: a pixel each. */
  _picture(lanes) {
    const { app } = this,
      size = lanes.length;
    const canvas = h("canvas", {
      role: "img",
      "aria-label":
        "Events delivered from each agent (rows) to each agent (columns); the busiest pairs are listed below",
    });
    canvas.width = canvas.height = size;
    const cell = (offset, all) => lanes[Math.min(size - 1, Math.floor((offset / all) * size))];
    const pair = (e) => [cell(e.offsetY, canvas.clientHeight), cell(e.offsetX, canvas.clientWidth)];
    canvas.addEventListener("click", (e) => app.selectPair(...pair(e)));
    canvas.addEventListener("pointermove", (e) => {
      const [from, to] = pair(e);
      canvas.title = `${name(from)} to ${name(to)}: ${from.sent.get(to.i) || 0}`;
    });
    const ctx = canvas.getContext("2d"),
      { theme } = app.painter;
    const most = busiest(lanes);
    ctx.fillStyle = theme.ground;
    ctx.fillRect(0, 0, size, size);
    ctx.fillStyle = theme.reroute;
    for (const from of lanes) {
      for (const [to, n] of from.sent) {
        ctx.globalAlpha = 0.15 + 0.85 * Math.sqrt(n / most);
        ctx.fillRect(to, from.i, 1, 1);
      }
    }
    return canvas;
  }

  _busiest(lanes) {
    const pairs = lanes.flatMap((from) =>
      [...from.sent].map(([to, n]) => ({ from, to: lanes[to], n })),
    );
    pairs.sort((a, b) => b.n - a.n);
    return h(
      "ul",
      { class: "rows", "aria-label": "Busiest pairs" },
      pairs.slice(0, 12).map(({ from, to, n }) =>
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
