// The run beside its twin: a second picture below the first, along the same time. What both have is
// drawn once, in the first; in the second it is only said, up to the first difference.

import { $, put } from "./dom.js";
import { Painter } from "./draw.js";
import { pill } from "./draw_frame.js";
import { line } from "./glyphs.js";
import { Layout, TOP } from "./layout.js";
import { Model } from "./model.js";
import { View } from "./view.js";
import { number, seconds } from "./words.js";

export class Twin {
  constructor(app, { head, rows, difference }) {
    this.app = app;
    this.model = new Model();
    this.model.head = head;
    this.model.add(rows);
    this.view = new View();
    this.layout = new Layout(this.model, this.view, app.layout);
    const canvas = $("twin-canvas");
    this.contents = app.contents;
    this.painter = new Painter(canvas, this);
    this.painter.recolour(app.painter.theme);
    this.isKnown = difference.records !== null; // else comparing took too long: all is drawn
    [this.here, this.there] = difference.records ?? [0, 0];
    this.says = difference.says;
    this.view.since = this.there ?? Infinity;
    app.model.beside = this.model; // so that the axis is long enough for both
    $("twin").hidden = false;
    $("with").hidden = false;
    const [above, below] = names(app.model.head, head);
    $("with").textContent = above;
    $("without").textContent = `${below}: ${end(head)}`;
    new ResizeObserver(() => app.ask()).observe(canvas.parentElement);
  }

  /** The moment of the first difference; null: there is none. */
  get us() {
    const times = [
      this.here === null ? Infinity : this.app.model.times[this.here],
      this.there === null ? Infinity : this.model.times[this.there],
    ];
    const first = Math.min(...times);
    return this.says === null || first === Infinity ? null : first;
  }

  paint() {
    const { app, view, painter } = this;
    this._fit();
    for (const key of ["from", "scale", "axis", "folded", "cleaned"]) view[key] = app.view[key];
    if (this.layout.axis !== app.layout.axis) this.layout.reset();
    if (painter.theme !== app.painter.theme) painter.recolour(app.painter.theme);
    painter.paint();
    this._same(painter);
    this._over(painter);
    for (const one of [app.painter, painter]) this._line(one, one === app.painter);
  }

  _fit() {
    const { view, painter } = this,
      ratio = devicePixelRatio || 1;
    const { clientWidth, clientHeight } = painter.canvas.parentElement;
    view.width = clientWidth;
    view.height = clientHeight;
    const [width, height] = [clientWidth, clientHeight].map((size) => Math.round(size * ratio));
    put(painter.canvas, { width, height });
    const { order, hidden } = this.app.view,
      shown = new Set(order.map((lane) => lane.id)),
      isFolded = ({ id }) => this.app.model.lane(id) && !shown.has(id);
    const agents = this.model.lanes.filter(isFolded).map((lane) => lane.id);
    view.hidden = { ...hidden, agents: new Set(agents) };
    view.arrange(this.model);
    view.fitLanes();
  }

  /** Where the first difference is, on a picture. */
  _x() {
    const { app } = this;
    if (this.us === null) return null;
    const t = this.here ?? this.there;
    return app.view.x(app.layout.axis.place({ t, us: this.us }));
  }

  /** The stretch that is the same as in the picture above. */
  _same(painter) {
    if (!this.isKnown) return;
    const x = this._x() ?? this._endX(),
      { ctx, view, theme } = painter;
    const from = Math.max(view.gutter, view.x(0)),
      to = Math.min(view.width, x);
    if (to <= from) return;
    ctx.fillStyle = theme.band;
    ctx.fillRect(from, TOP, to - from, view.height - TOP);
    const records = this.there ?? this.model.t;
    const told =
      this.us === null
        ? "The two runs are the same."
        : `The same as above up to here (${number(records)} records)`;
    write(painter, told, from, to, theme["ink-2"], 400);
  }

  _endX() {
    const { view } = this.painter;
    return view.x(this.app.layout.axis.place(this.model));
  }

  /** What comes after the twin's end: nothing, and why. */
  _over(painter) {
    const { ctx, view, theme } = painter;
    const from = Math.max(view.gutter, this._endX());
    if (from >= view.width) return;
    const isBad = this.model.finish?.outcome !== "submitted";
    ctx.fillStyle = isBad ? theme.error : theme.final;
    ctx.globalAlpha = 0.09;
    ctx.fillRect(from, TOP, view.width - from, view.height - TOP);
    ctx.globalAlpha = 1;
    const says = from > view.gutter ? "It ends here." : `It ended at ${seconds(this.model.us)}.`;
    write(painter, says, from, view.width, isBad ? theme.error : theme.final, 600);
  }

  /** The line of the first difference; above, with what it is. */
  _line(painter, isNamed) {
    const x = this._x(),
      { ctx, view, theme } = painter;
    if (x === null || x < view.gutter || x > view.width) return;
    line(ctx, x, TOP, x, view.height, { colour: theme.heal, width: 1.5, dash: [4, 3] });
    if (isNamed) pill(painter, `First difference: ${this.says}`, x, view.bottom + 3, theme.heal);
  }
}

/** The names of two runs: with and without the monitor, if that is what they differ in. */
function names(...heads) {
  if (heads[1].is_fork) return ["As recorded", "With the change"];
  const are = heads.map(({ method }) => method !== "mas");
  if (are[0] === are[1]) return heads.map(({ execution, file }) => execution ?? file);
  return are.map((is) => (is ? "With the monitor" : "Without the monitor"));
}

function end(head) {
  return (head.answers?.headline || "it has no end").replaceAll("`", "");
}

/** A line in the middle of a stretch, broken at blanks, if there is room for it. */
function write({ ctx, view, font }, text, from, to, colour, weight) {
  ctx.font = `${weight} 12px ${font}`;
  ctx.textBaseline = "middle";
  ctx.fillStyle = colour;
  const room = to - from - 16,
    lines = [""];
  for (const word of text.split(" ")) {
    const longer = `${lines.at(-1)} ${word}`.trim();
    if (ctx.measureText(longer).width <= room || !lines.at(-1)) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  if (lines.some((line) => ctx.measureText(line).width > room)) return;
  const middle = TOP + (view.height - TOP) / 2 - (lines.length - 1) * 8;
  lines.forEach((line, i) => ctx.fillText(line, from + 8, middle + i * 16));
}
