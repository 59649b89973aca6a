// The filters of the picture: agents, types of events, patterns, fates. And the legend.

import { buttonOf, h, pen, put } from "./dom.js";
import { arrive, FATE_COLOUR, FATE_DASH, isHollow, line, outline, shapeOf } from "./glyphs.js";
import { FATES } from "./model.js";
import { WORTH_COLOUR } from "./draw_frame.js";
import { number, weighed } from "./words.js";

const GROUPS = {
  agents: "Agents",
  types: "Events",
  worths: "Findings by severity",
  patterns: "Findings by pattern",
  fates: "Edges",
};

export class Filters {
  constructor(app, element) {
    this.app = app;
    this.element = element;
    this.sheet = element.querySelector(".sheet");
    element.addEventListener("toggle", () => element.open && this._fill());
    document.addEventListener("pointerdown", (e) => {
      for (const pop of document.querySelectorAll("details.pop[open]"))
        if (!pop.contains(e.target)) pop.open = false;
    });
    element.parentElement.addEventListener("keydown", (e) => {
      const pop = e.target.closest("details.pop");
      if (e.key !== "Escape" || !pop?.open) return;
      e.stopPropagation();
      pop.open = false;
      pop.querySelector("summary").focus();
    });
  }

  update() {
    const { hidden } = this.app.view;
    const count = Object.values(hidden).reduce((sum, names) => sum + names.size, 0);
    this.element.classList.toggle("on", count > 0);
    const textContent = count ? `Filter (${count} hidden)` : "Filter";
    put(this.element.querySelector("summary"), { textContent });
  }

  _choices() {
    const { model } = this.app;
    const patterns = new Map(),
      fates = [0, 0, 0, 0];
    for (const one of model.findings)
      patterns.set(one.pattern, (patterns.get(one.pattern) || 0) + 1);
    for (const edge of model.edges) if (edge.fate >= 0) fates[edge.fate] += 1;
    return {
      agents: model.lanes.slice(1).map((lane) => [lane.id, lane.id, lane.activations.length]),
      types: [...model.types].map(([type, n]) => [type, type, n]),
      worths: Object.entries(weighed(model.findings)).map(([one, n]) => [one, one, n]),
      patterns: [...patterns].map(([pattern, n]) => [pattern, pattern, n]),
      fates: FATES.map((fate, i) => [i, fate, fates[i]]),
    };
  }

  _fill() {
    const { app } = this;
    const parts = Object.entries(this._choices())
      .filter(([, all]) => all.length)
      .flatMap(([group, all]) => [
        h("h3", { text: GROUPS[group] }),
        h("fieldset", { "aria-label": GROUPS[group] },
          all.map(([key, label, n]) => this._box(group, key, label, n)),
        ),
      ]);
    const all = h("p.steps",
      buttonOf("Show everything", () => {
          app.everything();
          this._fill();
        }),
    );
    this.sheet.replaceChildren(...parts, all);
  }

  _box(group, key, label, n) {
    const box = h("input", { type: "checkbox", "data-group": group, "data-key": key });
    box.checked = !this.app.view.hidden[group].has(key);
    box.addEventListener("change", () => this.app.hide(group, key, !box.checked));
    return h("label", { title: label },
      box,
      h("span", { text: label }),
      h("small", { text: number(n) }),
    );
  }
}

const EVENTS = {
  problem: "problem, from outside",
  solution: "solution",
  raw_data: "raw data",
  message: "message",
  notice: "notice",
  system: "from healing",
  final: "final: a submitted answer",
  other: "any other type",
};
const FINDINGS = {
  error: "error: the work is in danger",
  warning: "warning: worth a look",
  notice: "notice: no alarm",
  silenced: "silenced by a policy",
};
const EDGES = {
  0: "consumed: productive",
  1: "delayed",
  2: "rerouted",
  3: "discarded",
  "-1": "not decided yet",
};

/** Fills the legend when it is opened, in the colours that hold then. */
export function startLegend(app, element) {
  const sheet = element.querySelector(".sheet");
  element.addEventListener("toggle", () => {
    if (!element.open) return;
    const keys = (names, paint) =>
      h("div.key",
        Object.entries(names).flatMap(([key, text]) => {
          const canvas = h("canvas", { "aria-hidden": "true" });
          canvas.paint = () => paint(pen(canvas), key);
          return [canvas, h("span", { text })];
        }),
      );
    sheet.replaceChildren(
      h("h3", { text: "Events" }),
      keys(EVENTS, (ctx, type) => event(ctx, app.painter.theme, type)),
      h("h3", { text: "Edges" }),
      keys(EDGES, (ctx, fate) => edge(ctx, app.painter.theme, Number(fate))),
      h("h3", { text: "Findings" }),
      keys(FINDINGS, (ctx, worth) => flag(ctx, app.painter.theme, worth)),
      h("h3", { text: "Activations" }),
      keys(
        {
          bar: "an agent at work",
          wait: "it only waited",
          error: "it failed",
          buffer: "events lie in its buffer: they wait",
        },
        (ctx, what) => bar(ctx, app.painter, what),
      ),
    );
    for (const canvas of sheet.querySelectorAll("canvas")) canvas.paint();
  });
}

function event(ctx, theme, type) {
  const shape = shapeOf(type);
  ctx.beginPath();
  outline(ctx, shape, 22, 10, 4.6);
  ctx.lineWidth = 1.6;
  ctx.fillStyle = ctx.strokeStyle = theme[shape];
  if (isHollow(shape)) ctx.stroke();
  else ctx.fill();
}

function edge(ctx, theme, fate) {
  ctx.fillStyle = theme[FATE_COLOUR[fate]];
  line(ctx, 1, 10, 34, 10, { colour: ctx.fillStyle, width: 1.5, dash: FATE_DASH[fate] });
  arrive(ctx, fate, { x: 42, y: 10 });
}

function flag(ctx, theme, worth) {
  const colour = theme[WORTH_COLOUR[worth]];
  ctx.beginPath();
  ctx.roundRect(8, 3, 28, 14, [0, 4, 4, 0]);
  ctx.lineWidth = 1.3;
  ctx.fillStyle = worth === "error" ? colour : theme.panel;
  ctx.fill();
  ctx.strokeStyle = colour;
  ctx.setLineDash(worth === "silenced" ? [3, 2] : []);
  ctx.stroke();
  ctx.setLineDash([]);
}

function bar(ctx, painter, what) {
  const { theme } = painter;
  ctx.fillStyle = { bar: theme.bar, wait: painter.hatched, error: theme.panel, buffer: theme.wait }[
    what
  ];
  ctx.beginPath();
  if (what === "buffer") ctx.rect(2, 9, 40, 3);
  else ctx.roundRect(2, 3, 40, 14, 3);
  ctx.fill();
  ctx.lineWidth = 1.3;
  ctx.strokeStyle = what === "error" ? theme.error : theme["ink-3"];
  if (what === "wait" || what === "error") ctx.stroke();
}
