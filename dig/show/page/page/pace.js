// How often that is shown which costs more, the more there is: while a run grows, once a second.

const SMALL = 1000; // events, up to which all is shown at once

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
