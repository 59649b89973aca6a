// From the moments of records to places along the picture: by wall time or by logical time, with
// stretches folded or not. A *place* is a number that grows with time; the view makes pixels of it.

import { seconds } from "./words.js";

const FOLDED = 0.03; // how long a folded stretch is, of the whole; less, where there are many
const QUIET = 0.08; // how long nothing happens in what is folded, of the whole

export class Axis {
  constructor(model, mode, folded) {
    this.model = model;
    this.mode = mode;
    this.isFolded = folded;
    this.folds = folded ? this._folds() : [];
  }

  /** The value on the axis of something that has a time. */
  value(at) {
    return this.mode === "wall" ? at.us : at.t;
  }

  /** The place of something that has a time. */
  place(at) {
    return this.fold(this.value(at));
  }

  get end() {
    const { now, beside } = this.model;
    return this.fold(Math.max(this.value(now), beside ? this.value(beside) : 1, 1));
  }

  /** The value at a place. */
  at(place) {
    let shift = 0;
    for (const fold of this.folds) {
      if (place <= fold.place) break;
      if (place < fold.place + fold.size) {
        return fold.from + ((place - fold.place) / fold.size) * (fold.to - fold.from);
      }
      shift = fold.to - (fold.place + fold.size);
    }
    return place + shift;
  }

  /** The record that was the latest at a value: its number. */
  record(value) {
    if (this.mode === "logical") return Math.max(0, Math.min(this.model.t, Math.floor(value)));
    return Math.max(0, firstBy(this.model.times, (time) => time, value + 0.5) - 1);
  }

  /** The moment at a place: its record and, along wall time, a time that may be after it. */
  moment(place) {
    const value = this.at(place),
      t = this.record(value),
      us = this.model.times[t] ?? 0;
    return { t, us: this.mode === "wall" ? Math.max(us, value) : us };
  }

  /** The place of a value. */
  fold(value) {
    const after = this.folds.length && firstBy(this.folds, (fold) => fold.from, value);
    if (after === 0) return value;
    const fold = this.folds[after - 1];
    if (value >= fold.to) return value - fold.to + fold.place + fold.size;
    return fold.place + ((value - fold.from) / (fold.to - fold.from)) * fold.size;
  }

  /** What repeats and, along wall time, when nothing happens; shortened. */
  _folds() {
    const whole = this.value(this.model),
      stretches = [...this._repeats(), ...this._quiet(whole)];
    stretches.sort((a, b) => a.from - b.from);
    const size = whole * Math.min(FOLDED, 0.25 / Math.max(1, stretches.length));
    const folds = [];
    let saved = 0,
      last = -Infinity;
    for (const { from, to, text } of stretches) {
      const begin = Math.max(from, last);
      if (to - begin < 1.5 * size) continue;
      folds.push({ from: begin, to, size, place: begin - saved, text });
      saved += to - begin - size;
      last = to;
    }
    return folds;
  }

  _repeats() {
    return this.model.repeats.found.map((one) => ({
      from: this.value(one.from),
      to: this.value(one.to),
      text: `×${one.count}`,
    }));
  }

  _quiet(whole) {
    if (this.mode !== "wall") return [];
    const { times } = this.model,
      quiet = [];
    for (let i = 1; i < times.length; i += 1) {
      const from = times[i - 1],
        to = times[i],
        edge = (to - from) * 0.04;
      if (to - from > whole * QUIET)
        quiet.push({ from: from + edge, to: to - edge, text: seconds(to - from) });
    }
    return quiet;
  }
}

const STEPS = [1, 2, 5];

/** Round values between two, not closer to one another than `least`. */
export function ticks(from, to, least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1e-9)));
  const step = power * (STEPS.find((one) => one * power >= least) ?? 10);
  const values = [];
  for (let value = Math.ceil(from / step) * step; value <= to; value += step) values.push(value);
  return { values, step };
}

/** The first of some things in order whose place is not before another. */
export function firstBy(things, placeOf, place) {
  let low = 0,
    high = things.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (placeOf(things[middle]) < place) low = middle + 1;
    else high = middle;
  }
  return low;
}
