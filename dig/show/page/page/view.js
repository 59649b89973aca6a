// What is looked at, and how: the window, the moment, the selection, what is hidden. Nothing else
// holds state that the address of a view would have to say.

import { GUTTER, TOP } from "./layout.js";
import { worth } from "./words.js";

export const LEAST_LANE = 4; // pixels
export const LEAD = 14; // pixels before the first moment of a run that is shown whole
export const MARGINS = LEAD + 50; // and after its last
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
    this.foot = 0; // pixels below the lanes for what is said about them
    this.measured = null; // a stretch of places: from, to
    this.width = 0;
    this.height = 0;
    this.selected = null;
    this.hops = 0; // besides what proves a finding
    this.focus = null; // Set of nodes that are not dimmed
    this.focusLanes = null;
    this.marked = null; // Set of nodes that the chosen finding names
    this.hasAllLanes = false; // also those without a part in the chosen finding
    this.hidden = {
      agents: new Set(),
      types: new Set(),
      worths: new Set(),
      patterns: new Set(),
      fates: new Set(),
    };
    this.order = []; // lanes from top to bottom; the first, of what is outside, never scrolls
    this.away = 0; // lanes without a part in the chosen finding, which are folded
    this.position = []; // of each lane in it; -1: hidden
    this.fitted = true; // goes on showing everything while a run grows
    this.end = 1; // the place of the last moment, and how much of a growing run's axis is free
    this.room = 1;
    this.changed = () => {};
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
    return lane ? TOP + this.position[lane] * this.laneHeight - this.top : TOP;
  }

  /** Where the lane ends that never scrolls, and where the others do. */
  get pinned() {
    return TOP + this.laneHeight;
  }

  get bottom() {
    return this.height - this.foot;
  }

  laneAt(y) {
    if (y < TOP || y > this.bottom) return null;
    const top = y < this.pinned ? 0 : this.top;
    return this.order[Math.floor((y - TOP + top) / this.laneHeight)] ?? null;
  }

  /** Which lanes there are, in which order; returns whether others than before. */
  arrange(model) {
    const shown = model.lanes.filter((lane) => lane.i === 0 || !this.hidden.agents.has(lane.id));
    const isPart = (lane) => lane.i === 0 || this.focusLanes.has(lane.i);
    const parts = this.marked && this.focus ? shown.filter(isPart) : shown;
    const before = this.order.map((lane) => lane.i).join();
    this.order = this.hasAllLanes ? shown : parts;
    this.away = shown.length - parts.length;
    this.position = new Array(model.lanes.length).fill(-1);
    this.order.forEach((lane, i) => {
      this.position[lane.i] = i;
    });
    return this.order.map((lane) => lane.i).join() !== before;
  }

  // --- moving ---

  /** The length of the axis: what the picture shows if it shows all, as the strip below it does. */
  get span() {
    return this.end * this.room;
  }

  /** Shows everything, along and across. */
  fit() {
    this.fitted = true;
    this.scale = (this.plot - MARGINS) / Math.max(this.span, 1e-9);
    this.from = -LEAD / this.scale;
    this.fitLanes();
  }

  fitLanes() {
    const each = (this.bottom - TOP - 6) / Math.max(1, this.order.length);
    const whole = Math.floor(each > 12 ? each : each * 8) / (each > 12 ? 1 : 8);
    this.laneHeight = Math.max(LEAST_LANE, Math.min(MOST_LANE, whole));
    this.top = 0;
    this.changed();
  }

  pan(dx, dy) {
    this.fitted = false;
    this.from -= dx / this.scale;
    this.top -= dy;
    this.bound();
  }

  center(place) {
    this.pan((this.place(this.gutter + this.plot / 2) - place) * this.scale, 0);
  }

  /** Zooms along time around a pixel that stays where it is. */
  zoom(factor, x) {
    this.fitted = false;
    const place = this.place(x);
    const least = (this.plot - MARGINS) / Math.max(this.span, 1e-9) / 1.5;
    this.scale = Math.max(least, Math.min(this.scale * factor, least * 1e6));
    this.from = place - (x - this.gutter) / this.scale;
    this.bound();
  }

  /** Makes lanes higher or lower, around a pixel. */
  stretch(factor, y) {
    const lane = (y - TOP + this.top) / this.laneHeight;
    this.laneHeight = Math.max(LEAST_LANE, Math.min(MOST_LANE, this.laneHeight * factor));
    this.top = lane * this.laneHeight - (y - TOP);
    this.bound();
  }

  /** Has some places take so much of the width, in the middle. */
  fill([from, to], share) {
    this.fitted = false;
    this.scale = (this.plot * share) / Math.max(to - from, this.span * 1e-6);
    this.from = (from + to) / 2 - this.plot / this.scale / 2;
    this.bound();
  }

  /** Comes so close to some places and lanes that one can tell what is there. */
  approach([from, to], lanes) {
    if (to > from && (to - from) * this.scale < SMALL) this.fill([from, to], 0.4);
    const at = lanes.map((lane) => this.position[lane]).filter((position) => position > 0),
      first = Math.min(...at),
      each = Math.min(LEGIBLE_LANE, (this.bottom - this.pinned) / (Math.max(...at) - first + 1));
    if (!at.length || each <= this.laneHeight) return;
    this.fitted = false;
    this.laneHeight = each;
    this.top = (first - 1) * each;
  }

  /** Brings some places and a lane into sight. */
  reveal([from, to], lane) {
    const seen = this.plot / this.scale;
    if (to - from > seen * 0.9) this.fill([from, to], 0.8);
    else if (from < this.from || to > this.from + seen) {
      this.fitted = false;
      this.from = (from + to - seen) / 2;
    }
    if (lane && this.position[lane] >= 0) {
      const y = this.position[lane] * this.laneHeight,
        room = this.bottom - TOP - this.laneHeight;
      if (y < this.top + this.laneHeight) this.top = y - this.laneHeight;
      if (y > this.top + room) this.top = y - room;
    }
    this.bound();
  }

  bound() {
    const tall = this.order.length * this.laneHeight - (this.bottom - TOP - 6);
    this.top = Math.max(0, Math.min(this.top, tall));
    const seen = this.plot / this.scale;
    this.from = Math.max(-seen * 0.5, Math.min(this.from, this.end - seen * 0.5));
    this.changed();
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
