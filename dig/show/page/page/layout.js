// The place of everything. Along time: places (see axis.js), kept for each node and only ever added
// to. Across: lanes, and sub-slots for events that would lie on one another at this zoom.

import { Axis } from "./axis.js";

export const GUTTER = 128; // pixels for the names of lanes
export const TOP = 50; // for the axis and the flags of findings
export const SLOT = 11; // for an event in its sub-slot

export class Layout {
  /** The places of a run; of one beside another, along the axis of the other's `above`. */
  constructor(model, view, above = null) {
    this.model = model;
    this.view = view;
    this.above = above;
    this.reset();
  }

  /** Begins anew, for another axis. */
  reset() {
    this.axis = this.above?.axis ?? new Axis(this.model, this.view.axis, this.view.folded);
    this.eventAt = [];
    this.startAt = [];
    this.endAt = []; // of an activation in progress: NaN
    this.fromAt = []; // of delivery edges
    this._open = [];
    this._slots = null;
    this.update();
  }

  /** Takes what is new in the model: as much work as there is news. */
  update() {
    const { events, activations, edges } = this.model,
      axis = this.axis;
    for (let i = this.eventAt.length; i < events.length; i += 1)
      this.eventAt.push(axis.place(events[i]));
    for (let i = this.startAt.length; i < activations.length; i += 1) {
      this.startAt.push(axis.place(activations[i]));
      this.endAt.push(NaN);
      this._open.push(i);
    }
    for (let i = this.fromAt.length; i < edges.length; i += 1)
      this.fromAt.push(axis.place(edges[i].from ?? edges[i].event));
    this._open = this._open.filter((i) => {
      const { end } = activations[i];
      if (end) this.endAt[i] = axis.place(end);
      return !end;
    });
    this.view.end = axis.end;
  }

  endOf(i) {
    return Number.isNaN(this.endAt[i]) ? this.axis.place(this.model.now) : this.endAt[i];
  }

  /** The places from the first to the last moment of some nodes; none, for none. */
  extent(nodes) {
    const places = nodes.flatMap((node) =>
      node.kind === "event"
        ? [this.eventAt[node.i]]
        : [this.startAt[node.i], this.endOf(node.i)],
    );
    return places.length ? [Math.min(...places), Math.max(...places)] : null;
  }

  /** The parts for which a lane of this height has place. */
  lane(height) {
    // Whole pixels: what is not smoothed at its edges is drawn much faster.
    const pad = Math.round(Math.max(1, Math.min(8, height * 0.08)));
    const bar = Math.round(Math.max(4, Math.min(15, height * 0.26)));
    const below = pad + bar + 6;
    const rows = Math.max(0, Math.floor((height - below) / SLOT));
    if (rows) return { pad, bar, below, rows, isTight: false };
    const tall = Math.round(Math.max(2, Math.min(15, height * 0.5))); // no place for events: they lie on bars
    return { pad, bar: tall, below: pad + tall + 6, rows, isTight: true };
  }

  /**
   * Sub-slots of events at a zoom: the row of each, and how many further events lie on it because
   * no row is free. No event is moved along time. Kept until the zoom changes.
   */
  slots(scale, height) {
    const { rows } = this.lane(height);
    const key = `${scale}|${rows}`;
    if (this._slots?.key !== key) this._slots = { key, row: [], on: [], more: new Map(), last: [] };
    const slots = this._slots,
      events = this.model.events;
    for (let i = slots.row.length; i < events.length; i += 1) {
      this._seat(slots, events[i], scale, i, Math.max(1, events[i].lane === 0 ? rows + 2 : rows));
    }
    return slots;
  }

  _seat(slots, event, scale, i, rows) {
    const last = (slots.last[event.lane] ??= []); // of each row: the latest event in it
    const isFree = (other) =>
      other === undefined || (this.eventAt[other] - this.eventAt[i]) * scale <= -SLOT;
    let row = 0;
    while (row < rows && !isFree(last[row])) row += 1;
    const on = row < rows ? -1 : last[rows - 1];
    slots.row.push(Math.min(row, rows - 1));
    slots.on.push(on);
    if (on < 0) last[row] = i;
    else slots.more.set(on, (slots.more.get(on) ?? 0) + 1);
  }
}
