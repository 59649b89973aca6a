// Finds stretches in which a team does the same again and again: the same agents, one after the
// other, do the same kind of thing. They are what is folded away.

const LONGEST = 16; // activations in one round
const LEAST = 3; // rounds

export class Repeats {
  constructor() {
    this.found = []; // {from, to, period, count}: activations that end, and those in one round
    this._signs = [];
    this._ends = [];
    this._same = new Array(LONGEST + 1).fill(0); // for each period: how long it has held
    this._open = null;
  }

  /** Takes the activation that ended last. */
  take(activation, outputs) {
    const fates = [0, 0, 0, 0];
    for (const edge of activation.inputs) fates[edge.fate] = 1;
    this._signs.push(`${activation.lane}|${fates.join("")}|${outputs}`);
    this._ends.push(activation);
    const n = this._signs.length - 1;
    let best = 0;
    for (let p = 1; p <= LONGEST; p += 1) {
      this._same[p] = n >= p && this._signs[n] === this._signs[n - p] ? this._same[p] + 1 : 0;
      if (!best && this._same[p] >= (LEAST - 1) * p && this._same[p] >= LEAST) best = p;
    }
    this._note(best, n);
  }

  _note(period, n) {
    const open = this._open;
    if (open && this._same[open.period] > 0) {
      this._stretch(open, n);
    } else if (period) {
      const first = Math.max(n - this._same[period] - period + 1, open ? open.last + 1 : 0);
      this._open = { period, first };
      this._stretch(this._open, n);
      if (this._open.count >= LEAST) this.found.push(this._open);
      else this._open = null;
    } else this._open = null;
  }

  /** All but the first round of a stretch is what repeats. */
  _stretch(one, n) {
    one.last = n;
    one.count = Math.floor((n - one.first + 1) / one.period);
    one.from = this._ends[one.first + one.period - 1].end;
    one.to = this._ends[one.first + one.count * one.period - 1].end;
  }
}
