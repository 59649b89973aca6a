// From the moments of records to places along the picture: by wall time or by logical time, with
// stretches folded or not. A *place* is a number that grows with time; the view makes pixels of it.

const FOLDED = 26; // how long a folded stretch is, in average records

export class Axis {
  constructor(model, mode, folded) {
    this.model = model;
    this.mode = mode;
    this.isFolded = folded;
    this.folds = folded ? this._folds() : [];
  }

  /** The value on the axis of something that has a time. */
  value(at) { return this.mode === "wall" ? at.us : at.t; }

  /** The place of something that has a time. */
  place(at) { return this._fold(this.value(at)); }

  get end() { return this._fold(Math.max(this.value(this.model), 1)); }

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
    const times = this.model.times;
    let low = 0, high = times.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (times[middle] <= value) low = middle + 1;
      else high = middle;
    }
    return Math.max(0, low - 1);
  }

  _fold(value) {
    const folds = this.folds;
    let low = 0, high = folds.length; // the last fold that begins at or before the value
    while (low < high) {
      const middle = (low + high) >> 1;
      if (folds[middle].from <= value) low = middle + 1;
      else high = middle;
    }
    if (low === 0) return value;
    const fold = folds[low - 1];
    if (value >= fold.to) return value - fold.to + fold.place + fold.size;
    return fold.place + ((value - fold.from) / (fold.to - fold.from)) * fold.size;
  }

  _folds() {
    const each = this.value(this.model) / Math.max(1, this.model.t);
    const size = FOLDED * each;
    const folds = [];
    let saved = 0, last = -Infinity;
    for (const one of this.model.repeats.found) {
      const from = Math.max(this.value(one.from), last), to = this.value(one.to);
      if (to - from < 1.5 * size) continue;
      folds.push({ from, to, size, place: from - saved, count: one.count, repeat: one });
      saved += to - from - size;
      last = to;
    }
    return folds;
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
