// What is looked at, and how: the window, the moment, the selection, what is hidden. Nothing else
// holds state that the address of a view would have to say.

import { GUTTER, TOP } from "./layout.js";
import { worth } from "./words.js";

export const LEAST_LANE = 5; // pixels
const MOST_LANE = 110;
const LEGIBLE_LANE = 30; // with place for events, and for what they are called
const SMALL = 160; // pixels: too short to tell what is there

export class View {
  constructor() {
    this.axis = "wall";
    this.cleaned = false;
    this.folded = false;
    this.since = 0; // logical time before which nothing is shown: it is in the picture above
    this.at = null; // logical time up to which the graph is shown; null: all of it
    this.from = 0; // the place at the left edge
    this.scale = 1; // pixels a place
    this.top = 0; // pixels scrolled down
    this.laneHeight = 60;
    this.width = 0;
    this.height = 0;
    this.selected = null;
    this.hops = 0; // besides what proves a finding
    this.focus = null; // Set of nodes that are not dimmed
    this.focusLanes = null;
    this.marked = null; // Set of nodes that the chosen finding names
    this.hidden = {
      agents: new Set(),
      types: new Set(),
      worths: new Set(),
      patterns: new Set(),
      fates: new Set(),
    };
    this.order = []; // lanes from top to bottom
    this.position = []; // of each lane in it; -1: hidden
    this.fitted = true; // goes on showing everything while a run grows
    this._told = [];
  }

  onChange(listener) {
    this._told.push(listener);
  }

  changed(what) {
    for (const listener of this._told) listener(what);
  }

  // --- geometry ---

  get plot() {
    return Math.max(40, this.width - this.gutter);
  }

  get gutter() {
    return this.width < 620 ? 84 : GUTTER;
  }

  x(place) {
    return this.gutter + (place - this.from) * this.scale;
  }

  place(x) {
    return this.from + (x - this.gutter) / this.scale;
  }

  y(lane) {
    return TOP + this.position[lane] * this.laneHeight - this.top;
  }

  laneAt(y) {
    if (y < TOP) return null;
    return this.order[Math.floor((y - TOP + this.top) / this.laneHeight)] ?? null;
  }

  /** Which lanes there are, in which order. */
  arrange(model) {
    this.order = model.lanes.filter((lane) => lane.i === 0 || !this.hidden.agents.has(lane.id));
    this.position = new Array(model.lanes.length).fill(-1);
    this.order.forEach((lane, i) => {
      this.position[lane.i] = i;
    });
  }

  // --- moving ---

  /** Shows everything, along and across. */
  fit(end) {
    this.fitted = true;
    const room = this.plot - 64;
    this.scale = room / Math.max(end, 1e-9);
    this.from = -14 / this.scale;
    this.fitLanes();
  }

  fitLanes() {
    const each = (this.height - TOP - 6) / Math.max(1, this.order.length);
    const whole = Math.floor(each > 12 ? each : each * 8) / (each > 12 ? 1 : 8);
    this.laneHeight = Math.max(LEAST_LANE, Math.min(MOST_LANE, whole));
    this.top = 0;
  }

  pan(dx, dy, end) {
    this.fitted = false;
    this.from -= dx / this.scale;
    this.top -= dy;
    this.bound(end);
  }

  /** Zooms along time around a pixel that stays where it is. */
  zoom(factor, x, end) {
    this.fitted = false;
    const place = this.place(x);
    const least = (this.plot - 64) / Math.max(end, 1e-9) / 1.5;
    this.scale = Math.max(least, Math.min(this.scale * factor, least * 1e6));
    this.from = place - (x - this.gutter) / this.scale;
    this.bound(end);
  }

  /** Makes lanes higher or lower, around a pixel. */
  stretch(factor, y) {
    const lane = (y - TOP + this.top) / this.laneHeight;
    this.laneHeight = Math.max(LEAST_LANE, Math.min(MOST_LANE, this.laneHeight * factor));
    this.top = lane * this.laneHeight - (y - TOP);
    this.bound(null);
  }

  /** Comes so close to a stretch of places in some lanes that one can tell what is there. */
  approach(from, to, lanes) {
    if (to > from && (to - from) * this.scale < SMALL) {
      this.fitted = false;
      this.scale = (this.plot * 0.4) / (to - from);
      this.from = (from + to) / 2 - this.plot / this.scale / 2;
    }
    const span = Math.max(...lanes) - Math.min(...lanes) + 1;
    const each = Math.min(LEGIBLE_LANE, Math.floor((this.height - TOP) / span));
    if (lanes.length && each > this.laneHeight) {
      this.fitted = false;
      this.laneHeight = each;
      this.top = Math.min(...lanes) * each;
    }
  }

  /** Brings a stretch of places and a lane into sight. */
  reveal(from, to, lane, end) {
    const seen = this.plot / this.scale;
    if (from < this.from || to > this.from + seen) {
      this.fitted = false;
      if (to - from > seen * 0.9) this.scale = (this.plot * 0.8) / (to - from);
      this.from = (from + to) / 2 - this.plot / this.scale / 2;
    }
    if (lane !== null && this.position[lane] >= 0) {
      const y = this.position[lane] * this.laneHeight,
        room = this.height - TOP - this.laneHeight;
      if (y < this.top) this.top = y;
      if (y > this.top + room) this.top = y - room;
    }
    this.bound(end);
  }

  bound(end) {
    const tall = this.order.length * this.laneHeight - (this.height - TOP - 6);
    this.top = Math.max(0, Math.min(this.top, tall));
    if (end === null) return;
    const seen = this.plot / this.scale;
    this.from = Math.max(-seen * 0.5, Math.min(this.from, end - seen * 0.5));
  }

  // --- what is to be seen ---

  /** Shows some nodes, and dims the others; null dims nothing. */
  setFocus(nodes) {
    this.focus = nodes;
    this.focusLanes = nodes && new Set([...nodes].map((node) => node.lane));
  }

  get until() {
    return this.at === null ? Infinity : this.at;
  }

  showsEvent(event) {
    return (
      event.t <= this.until &&
      event.t >= this.since &&
      this.position[event.lane] >= 0 &&
      !(this.cleaned && event.touched > this.until) &&
      !(this.cleaned && event.touched === Infinity) &&
      !this.hidden.types.has(event.type)
    );
  }

  showsActivation(one) {
    return (
      one.t <= this.until &&
      one.t >= this.since &&
      this.position[one.lane] >= 0 &&
      !(this.cleaned && (one.touched > this.until || one.touched === Infinity))
    );
  }

  /** The fate of a delivery edge at the moment that is shown: -1, if it has none yet. */
  fateOf(edge) {
    return edge.fate >= 0 && edge.activation.end.t <= this.until ? edge.fate : -1;
  }

  showsEdge(edge, fate) {
    return (
      !(this.cleaned && fate !== 0) &&
      !this.hidden.fates.has(fate) &&
      this.showsActivation(edge.activation) &&
      this.showsEvent(edge.event)
    );
  }

  listsFinding(finding) {
    const { worths, patterns } = this.hidden;
    return !worths.has(worth(finding)) && !patterns.has(finding.pattern);
  }

  showsFinding(finding) {
    return (
      finding.t <= this.until && finding.t >= this.since && this.listsFinding(finding)
    );
  }

  isDim(node) {
    return this.focus !== null && !this.focus.has(node);
  }
}
