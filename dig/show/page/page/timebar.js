// The moment: scrubber, play, steps. The graph is shown as it stood after one record.

import { seconds } from "./words.js";

const WHOLE_S = 24; // how long a whole run plays

export class Timebar {
  constructor(app, { scrubber, moment, play, back, on, end }) {
    Object.assign(this, { app, scrubber, moment, play, playing: false, place: 0, last: 0 });
    scrubber.addEventListener("input", () => {
      const t = Number(scrubber.value);
      app.setAt(t >= app.model.t ? null : t);
    });
    play.addEventListener("click", () => this.toggle());
    back.addEventListener("click", () => this.step(-1));
    on.addEventListener("click", () => this.step(1));
    end.addEventListener("click", () => app.setAt(null));
  }

  update() {
    const { model, view } = this.app,
      t = view.at ?? model.t;
    this.scrubber.max = String(Math.max(0, model.t));
    this.scrubber.value = String(t);
    this.scrubber.setAttribute("aria-valuetext", `record ${t} at ${seconds(model.times[t] ?? 0)}`);
    this.moment.textContent =
      view.at === null
        ? `all of it · ${seconds(model.us)}`
        : `record ${t} of ${model.t} · ${seconds(model.times[t] ?? 0)}`;
    this.play.textContent = this.playing ? "Pause" : "Play";
    this.play.setAttribute("aria-pressed", String(this.playing));
  }

  step(by) {
    const { model, view } = this.app;
    this.stop();
    const t = (view.at ?? model.t) + by;
    this.app.setAt(t >= model.t ? null : Math.max(0, t));
  }

  toggle() {
    if (this.playing) {
      this.stop();
      return;
    }
    const { model, view, layout } = this.app;
    const at = view.at === null || view.at >= model.t ? 0 : view.at;
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
    const { layout, model } = this.app,
      { axis } = layout;
    this.place += (axis.end * Math.max(0, now - this.last)) / 1000 / WHOLE_S;
    this.last = now;
    const t = axis.record(axis.at(this.place));
    if (this.place >= axis.end) {
      this.stop();
      this.app.setAt(null);
      return;
    }
    if (t !== this.app.view.at) this.app.setAt(Math.min(t, model.t));
    requestAnimationFrame((then) => this._tick(then));
  }
}
