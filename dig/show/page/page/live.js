// The parts for a run that goes on: a clock that goes on though there is no news, since a team may be
// stuck; and how often that is shown which costs more, the more there is.

const EVERY_MS = 500;
const SMALL = 1000; // events, up to which all is shown at once; beyond, once a second
const SHORT_US = 2e6; // a standstill that is not told

export class Clock {
  constructor(app) {
    Object.assign(this, { app, told: null, at: 0 });
  }

  /** Takes what the clock shows now, how fast it is, and the standstill of the team. */
  take(told) {
    if (!this.told) this.timer = setInterval(() => this._tick(), EVERY_MS);
    this.told = told;
    this.at = performance.now();
    this._tick();
  }

  stop() {
    clearInterval(this.timer);
    this.told = null;
    this.app.model.clockUs = 0;
  }

  /** The standstill, while it is one worth telling: since when, and when it is a deadlock. */
  get standstill() {
    const found = this.told?.standstill,
      { us } = this.app.model.now;
    return found && us >= found.since_us + SHORT_US && us < found.due_us ? found : null;
  }

  _tick() {
    const { app, told } = this,
      { model } = app;
    if (!app.isReady || !told.speed) return;
    if (model.finish) this.stop();
    else model.clockUs = told.us + (performance.now() - this.at) * 1000 * told.speed;
    app.grow();
  }
}

export class Pace {
  constructor(app) {
    this.app = app;
    this._version = 0;
    this._at = -Infinity;
  }

  /** The version of the model to show. */
  get version() {
    const { model, live } = this.app;
    const now = performance.now();
    if (live !== "live" || model.events.length < SMALL || now - this._at > 1000) {
      this._at = now;
      this._version = model.version;
    } else if (this._version !== model.version) {
      clearTimeout(this._later);
      this._later = setTimeout(() => this.app.ask(), 1000);
    }
    return this._version;
  }
}
