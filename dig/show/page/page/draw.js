// The picture. Only what is in sight is drawn; where there is more than a pixel can show, events
// become a profile of how many there are, and edges wait until one looks closer.

import { firstBy } from "./axis.js";
import { drawBands, drawCandidates, drawChain } from "./draw_diagnosis.js";
import { drawEdges } from "./draw_edges.js";
import {
  drawFlags, drawFolds, drawFoot, drawFrame, drawMeasured, drawMoment, drawOutages, drawWaits, WORTH_COLOUR,
} from "./draw_frame.js";
import { hatch, isHollow, outline, shapeOf } from "./glyphs.js";
import { SLOT, TOP } from "./layout.js";
import { worth } from "./words.js";

const MOST_EVENTS = 6000; // in sight, as shapes of their own
const MOST_SAID = 36; // characters of what an event says
const DIM = 0.13;

export class Painter {
  constructor(canvas, { model, layout, view, contents }) {
    Object.assign(this, { canvas, model, layout, view, contents });
    this.ctx = canvas.getContext("2d", { alpha: false });
    this.drawn = { events: 0, activations: 0, edges: 0, isMore: false, isDense: false };
    this.frameMs = 0;
    this.frames = 0;
    this.hover = null;
  }

  /** Takes other colours. */
  recolour(theme) {
    this.theme = theme;
    this.hatched = hatch(this.ctx, theme["ink-3"], theme.panel);
    this.font = getComputedStyle(document.body).fontFamily;
  }

  paint() {
    const began = performance.now();
    const { ctx, view, theme } = this;
    const ratio = devicePixelRatio || 1;
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.fillStyle = theme.ground;
    ctx.fillRect(0, 0, view.width, view.height);
    this.shape = this.layout.lane(view.laneHeight);
    this.left = view.place(view.gutter - 80);
    this.right = view.place(view.width + 20);
    drawFrame(this);
    ctx.save();
    ctx.beginPath();
    ctx.rect(view.gutter, TOP, view.plot, view.bottom - TOP);
    ctx.clip();
    this._contents();
    ctx.restore();
    drawFoot(this);
    drawFlags(this);
    this.frameMs = performance.now() - began;
    this.firstMs ??= performance.now();
    this.frames += 1;
  }

  _contents() {
    this.inSight = this._inSight();
    const area = this.view.plot * Math.max(1, this.view.height - TOP);
    this.isDense = this.inSight.length > Math.min(MOST_EVENTS, area / (SLOT * SLOT * 2.2));
    this.seated = this.isDense
      ? this.inSight.filter((i) => this.view.focus?.has(this.model.events[i]))
      : this.inSight;
    this.slots = this.isDense ? null : this.layout.slots(this.view.scale, this.view.laneHeight);
    drawBands(this);
    drawFolds(this);
    drawWaits(this);
    const edges = drawEdges(this);
    drawChain(this);
    this._bars();
    if (this.isDense) this._profile();
    if (this.view.top > 0) this._pinned();
    else this._events(this.seated);
    drawCandidates(this);
    drawOutages(this);
    drawMoment(this);
    drawMeasured(this);
    Object.assign(this.drawn, edges, { events: this.inSight.length, isDense: this.isDense });
  }

  /** The first lane above the others, which are scrolled below it. */
  _pinned() {
    const { ctx, view, theme } = this,
      isFirst = (i) => this.model.events[i].lane === 0;
    this._events(this.seated.filter((i) => !isFirst(i)));
    ctx.fillStyle = theme.band;
    ctx.fillRect(view.gutter, TOP, view.plot, view.laneHeight);
    this._events(this.seated.filter(isFirst));
  }

  _inSight() {
    const { layout, model, view } = this,
      found = [];
    const { events } = model,
      places = layout.eventAt;
    const low = view.top / view.laneHeight - 1;
    const high = (view.top + view.height - TOP) / view.laneHeight;
    const isHere = view.position.map(
      (position) => position === 0 || (position > low && position < high),
    );
    for (
      let i = firstBy(places, (place) => place, this.left);
      i < events.length && places[i] <= this.right;
      i += 1
    )
      if (isHere[events[i].lane] && view.showsEvent(events[i])) found.push(i);
    return found;
  }

  isLaneSeen(lane) {
    const { view } = this;
    const y = view.y(lane);
    return view.position[lane] >= 0 && y > TOP - view.laneHeight && y < view.height;
  }

  _bars() {
    const { ctx, view, layout, model, theme, shape } = this;
    const last = new Float64Array(model.lanes.length).fill(-1e9);
    let count = 0,
      run = null; // small bars that touch, which are drawn as one
    const flush = () => {
      if (!run) return;
      ctx.globalAlpha = run.alpha;
      ctx.fillStyle = theme.bar;
      ctx.fillRect(run.x0, run.y, run.x1 - run.x0, shape.bar);
      run = null;
    };
    ctx.font = `10px ${this.font}`;
    ctx.textBaseline = "middle";
    for (const lane of view.order) {
      if (!this.isLaneSeen(lane.i)) continue;
      const y = Math.round(view.y(lane.i)) + shape.pad;
      for (
        let k = firstBy(lane.activations, (one) => layout.endOf(one.i), this.left);
        k < lane.activations.length;
        k += 1
      ) {
        const one = lane.activations[k];
        if (layout.startAt[one.i] > this.right) break;
        if (!view.showsActivation(one)) continue;
        const x0 = view.x(layout.startAt[one.i]);
        const isOpen = !one.end || one.end.t > view.until;
        const until = one.gone?.t <= view.until ? layout.axis.place(one.gone) : this.now();
        const x1 = Math.max(x0 + 2, view.x(isOpen ? until : layout.endAt[one.i]));
        if (x1 - last[lane.i] < 0.8 && !one.findings.length && one !== view.selected) continue;
        last[lane.i] = x1;
        count += 1;
        if (isOpen || !this._isSmall(one, x1 - x0)) {
          this._bar(one, x0, x1, y, isOpen);
          continue;
        }
        const [from, to] = [Math.round(x0), Math.round(x1)],
          alpha = view.isDim(one) ? DIM : 1;
        if (run && from <= run.x1 && alpha === run.alpha) run.x1 = Math.max(run.x1, to);
        else {
          flush();
          run = { x0: from, x1: Math.max(from + 1, to), y, alpha };
        }
      }
      flush();
    }
    ctx.globalAlpha = 1;
    this.drawn.activations = count;
    ctx.lineWidth = 1;
    ctx.strokeStyle = theme.line;
  }

  /** The place of the moment that is shown. */
  now() {
    const { layout, view, model } = this;
    return view.at === null
      ? layout.axis.place(model.now)
      : layout.axis.place({ t: view.at, us: model.times[view.at] });
  }

  /** The activation is only a small dark bar: without a name, a sign or a ring. */
  _isSmall(one, width) {
    const { view } = this;
    if (width >= 6 && this.shape.bar >= 8) return false;
    if (one === view.selected || one === this.hover || view.marked?.has(one)) return false;
    return one.action !== "wait" && one.action !== "error";
  }

  _bar(one, x0, x1, y, isOpen) {
    const { ctx, view, theme, shape } = this;
    const width = x1 - x0,
      action = isOpen ? "working" : one.action;
    ctx.globalAlpha = view.isDim(one) ? DIM : 1;
    ctx.fillStyle = action === "wait" ? this.hatched : action === "error" ? theme.panel : theme.bar;
    ctx.beginPath();
    if (width < 6 || shape.bar < 8) ctx.rect(x0, y, width, shape.bar);
    else ctx.roundRect(x0, y, width, shape.bar, 3);
    ctx.fill();
    const mark = { wait: theme["ink-3"], error: theme.error, working: theme.accent }[action];
    if (mark && width > 3) {
      ctx.strokeStyle = mark;
      ctx.lineWidth = action === "error" ? 1.6 : 1;
      ctx.stroke();
    }
    this._mark(one, x0 - 2, y - 2, width + 4, shape.bar + 4);
    const left = Math.max(x0, view.gutter) + 5; // the name stays where one can see it
    if (x1 - left > 21 && shape.bar >= 11 && !shape.isTight && !view.isDim(one)) {
      ctx.fillStyle = action === "wait" || action === "error" ? theme["ink-2"] : theme["bar-ink"];
      const text = action === "error" ? `! ${one.id}` : one.id;
      if (ctx.measureText(text).width < x1 - left - 3) {
        if (action === "wait") this._behind(text, left, y + shape.bar / 2);
        ctx.fillText(text, left, y + shape.bar / 2 + 0.5);
      }
    }
  }

  _behind(text, x, y) {
    const { ctx, theme } = this,
      ink = ctx.fillStyle;
    ctx.fillStyle = theme.panel;
    ctx.fillRect(x - 2, y - 5.5, ctx.measureText(text).width + 4, 11);
    ctx.fillStyle = ink;
  }

  /** A ring around what is chosen or pointed at, and around what the chosen finding names. */
  _mark(node, x, y, width, height) {
    const { ctx, theme, view } = this;
    const isNamed = view.marked?.has(node);
    if (!isNamed && node !== view.selected && node !== this.hover) return;
    ctx.strokeStyle = isNamed ? theme[WORTH_COLOUR[worth(view.selected)]] : theme.accent;
    ctx.lineWidth = isNamed ? 1.5 : 2;
    ctx.beginPath();
    ctx.roundRect(x, y, width, height, 5);
    ctx.stroke();
  }

  /** The place at which an event is drawn. */
  seat(i) {
    const { view, layout, slots, shape } = this;
    const event = this.model.events[i];
    const top = view.y(event.lane);
    const on = slots?.on[i] ?? -1,
      x = view.x(layout.eventAt[on < 0 ? i : on]);
    if (shape.isTight) return { x, y: top + shape.pad + shape.bar / 2, s: 2.6 };
    const first = event.lane === 0 ? shape.pad + 4 : shape.below + 3;
    return { x, y: top + first + (slots?.row[i] ?? 0) * SLOT, s: 3.6 };
  }

  /** Events, gathered by look and drawn at once. */
  _events(shown) {
    const { ctx, view, model, theme } = this,
      looks = new Map(),
      seats = [];
    const isLabelled = this.seated.length < 160 && !this.shape.isTight;
    for (const i of shown) {
      const event = model.events[i],
        seat = this.seat(i),
        isCounted = this.slots?.on[i] >= 0, // no row is free: it lies on another event
        isUnder = isCounted && !view.focus?.has(event);
      const key = [view.isDim(event) ? DIM : 1, shapeOf(event.type), this._colour(event)].join("|");
      if (!looks.has(key)) looks.set(key, []);
      if (!isUnder) looks.get(key).push(seat);
      this._mark(event, seat.x - 7, seat.y - 7, 14, 14);
      const more = this.shape.isTight ? 0 : this.slots?.more.get(i);
      if (!isUnder && (isLabelled || more)) seats.push({ event, more, isLabelled, ...seat });
    }
    for (const [key, all] of [...looks].sort()) {
      const [alpha, shape, colour] = key.split("|");
      ctx.globalAlpha = Number(alpha);
      ctx.beginPath();
      for (const { x, y, s } of all) outline(ctx, shape, x, y, s);
      ctx.lineWidth = 1.5;
      ctx.fillStyle = isHollow(shape) ? theme.ground : theme[colour];
      ctx.strokeStyle = theme[colour];
      ctx.fill();
      if (isHollow(shape)) ctx.stroke();
    }
    ctx.globalAlpha = 1;
    this._labels(seats);
  }

  /** The colour of an event: of its type; an answer (none of a turn called off) is green if accepted as good. */
  _colour(event) {
    if (!event.final) return shapeOf(event.type);
    const { end, error } = this.model.node(event.source) ?? {};
    if (event.accepted === undefined || end?.isOff) return "ink-3";
    const isBad = error || (!this.model.run.session && this.model.head.answers?.grade === "bad");
    return isBad || event.findings.some((one) => ["error", "warning"].includes(worth(one))) ? "error" : "final";
  }

  /** Ids beside events, from right to left, where there is place up to the next one; on the way of
   * a finding with the beginning of what the event says. What is dim has none. */
  _labels(seats) {
    const { ctx, theme, view } = this,
      next = new Map();
    ctx.font = `10px ${this.font}`;
    ctx.textBaseline = "middle";
    ctx.fillStyle = theme["ink-2"];
    ctx.strokeStyle = theme.ground;
    ctx.lineWidth = 3;
    ctx.lineJoin = "round";
    for (const { event, more, isLabelled, x, y } of seats.reverse()) {
      if (view.isDim(event)) continue;
      const row = `${event.lane}|${Math.round(y)}`;
      const id = event.id.length > 14 ? `${event.id.slice(0, 13)}…` : event.id;
      const count = more ? `+${more}` : "",
        room = (next.get(row) ?? view.width) - x - 17;
      const says = view.marked && isLabelled ? this.contents.excerpt(event, MOST_SAID) : "";
      const text = [[id, count, says], [id, count], [count]]
        .slice(isLabelled ? 0 : 2)
        .map((parts) => parts.filter(Boolean).join(" "))
        .find((one) => one && ctx.measureText(one).width < room);
      next.set(row, x);
      if (!text || x < view.gutter) continue;
      const left = x + (view.marked?.has(event) ? 11 : 8);
      ctx.strokeText(text, left, y + 0.5); // so that edges do not run through it
      ctx.fillText(text, left, y + 0.5);
    }
  }

  /** The number of events, pixel by pixel, where they lie too thick. */
  _profile() {
    const { ctx, view, layout, model, theme, shape } = this;
    const step = view.order.length > 12 ? 3 : 2,
      width = Math.ceil(view.plot / step);
    const room = shape.isTight ? view.laneHeight * 0.4 : view.laneHeight - shape.below - 2;
    if (room < 3) return;
    const counts = []; // by lane and column
    let most = 1;
    for (const i of this.inSight) {
      const row = (counts[model.events[i].lane] ??= new Uint16Array(width));
      const column = Math.floor(((layout.eventAt[i] - view.from) * view.scale) / step);
      if (column >= 0 && column < width) most = Math.max(most, (row[column] += 1));
    }
    ctx.fillStyle = theme.density;
    ctx.globalAlpha = view.focus ? DIM : 1;
    counts.forEach((row, lane) => {
      const bottom = Math.round(view.y(lane) + view.laneHeight - 2);
      const tall = (n) => (n ? Math.max(1, Math.round(room * Math.sqrt(n / most))) : 0);
      for (let column = 0, from = 0; column < width; column += 1) {
        const height = tall(row[column]);
        if (column + 1 < width && tall(row[column + 1]) === height) continue; // drawn as one
        const wide = (column + 1 - from) * step;
        if (height) ctx.fillRect(view.gutter + from * step, bottom - height, wide, height);
        from = column + 1;
      }
    });
  }
}
