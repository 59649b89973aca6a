// The moment: slider, play, steps. The graph is shown as it stood after one record. The slider has
// the scale of the strip above it: a place on it is a place on the axis.

import { put } from "./dom.js";
import { seconds } from "./words.js";

const WHOLE_S = 24; // how long a whole run plays

export class Timebar {
  constructor(app, scrubber, play) {
    Object.assign(this, { app, scrubber, play, playing: false, place: 0, last: 0 });
    scrubber.addEventListener("input", () => {
      const { axis } = app.layout;
      app.setAt(axis.record(axis.at(Number(scrubber.value))));
    });
    scrubber.addEventListener("keydown", (e) => {
      const step = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[e.key];
      if (!step) return;
      e.preventDefault();
      e.stopPropagation();
      this.step(step);
    });
  }

  /** The moment that is shown, in words. */
  get text() {
    const { model, view } = this.app,
      t = view.at ?? model.t;
    return `record ${t} of ${model.t} at ${seconds(model.times[t] ?? 0)}`;
  }

  update() {
    const { view, painter } = this.app;
    put(this.scrubber, { max: String(view.span), ariaValueText: this.text });
    put(this.scrubber, { value: String(painter.now()) });
    put(this.play, {
      textContent: this.playing ? "❚❚" : "▶",
      ariaLabel: this.playing ? "Pause" : "Play",
    });
  }

  step(by) {
    const { model, view } = this.app;
    this.stop();
    this.app.setAt((view.at ?? model.t) + by);
  }

  toggle() {
    if (this.playing) {
      this.stop();
      return;
    }
    const { model, view, layout } = this.app;
    const at = view.at ?? 0;
    this.playing = true;
    this.place = layout.axis.place({ t: at, us: model.times[at] });
    this.last = performance.now();
    this.app.setAt(at);
    requestAnimationFrame((now) => this._tick(now));
  }

  stop() {
    this.playing = false;
    this.update();
  }

  _tick(now) {
    if (!this.playing) return;
    const { axis } = this.app.layout;
    this.place += (axis.end * Math.max(0, now - this.last)) / 1000 / WHOLE_S;
    this.last = now;
    if (this.place >= axis.end) {
      this.stop();
      this.app.setAt(null);
      return;
    }
    this.app.setAt(axis.record(axis.at(this.place)));
    requestAnimationFrame((then) => this._tick(then));
  }
}
