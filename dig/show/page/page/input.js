// Mouse, touch and wheel on the picture and the minimap.

import { hit } from "./hit.js";

const AXIS = 24; // pixels from the top in which a drag measures

export class Input {
  constructor(app, canvas) {
    this.app = app;
    this.canvas = canvas;
    this.pointers = new Map();
    this.moved = 0;
    canvas.addEventListener("wheel", (e) => this._wheel(e), { passive: false });
    canvas.addEventListener("pointerdown", (e) => this._down(e));
    canvas.addEventListener("pointermove", (e) => this._move(e));
    canvas.addEventListener("pointerup", (e) => this._up(e));
    canvas.addEventListener("pointercancel", (e) => this._lift(e));
    canvas.addEventListener("pointerleave", () => app.hover(null));
    canvas.addEventListener("dblclick", (e) => app.view.zoom(2.5, e.offsetX));
  }

  /** The wheel zooms along time; with Shift it goes along, with Alt lanes grow or shrink. */
  _wheel(e) {
    e.preventDefault();
    const { app } = this;
    const unit = e.deltaMode === 1 ? 16 : e.deltaMode === 2 ? 400 : 1;
    const dx = e.deltaX * unit,
      dy = e.deltaY * unit;
    if (e.altKey) app.view.stretch(Math.exp(-dy / 400), e.offsetY);
    else if (e.shiftKey) app.view.pan(-(dx || dy), 0);
    else if (!e.ctrlKey && Math.abs(dx) > Math.abs(dy)) app.view.pan(-dx, 0);
    else if (e.offsetX < app.view.gutter && !e.ctrlKey) app.view.pan(0, -dy);
    else app.view.zoom(Math.exp(-dy / (e.ctrlKey ? 120 : 420)), e.offsetX);
  }

  _down(e) {
    if (e.button > 0) return;
    this.canvas.setPointerCapture(e.pointerId);
    this.pointers.set(e.pointerId, { x: e.offsetX, y: e.offsetY });
    if (this.pointers.size === 1) this.moved = 0;
    const isMeasuring = e.shiftKey || e.offsetY < AXIS;
    this.measuredFrom = isMeasuring ? this.app.view.place(e.offsetX) : null;
    if (isMeasuring) this.app.measure(null);
  }

  _move(e) {
    const last = this.pointers.get(e.pointerId);
    if (!last) {
      this.app.hover(hit(this.app.painter, e.offsetX, e.offsetY), e.offsetX, e.offsetY);
      return;
    }
    const dx = e.offsetX - last.x,
      dy = e.offsetY - last.y;
    if (this.pointers.size === 2) this._pinch(e, last);
    else {
      this.moved += Math.abs(dx) + Math.abs(dy);
      if (this.moved > 4 && this.measuredFrom !== null) {
        const to = this.app.view.place(e.offsetX);
        this.app.measure([Math.min(to, this.measuredFrom), Math.max(to, this.measuredFrom)]);
      } else if (this.moved > 4) {
        this.canvas.classList.add("grabbing");
        this.app.view.pan(dx, dy);
      }
    }
    this.pointers.set(e.pointerId, { x: e.offsetX, y: e.offsetY });
  }

  _pinch(e, last) {
    const [other] = [...this.pointers].filter(([id]) => id !== e.pointerId).map(([, at]) => at);
    const far = (at) => Math.hypot(at.x - other.x, at.y - other.y);
    const now = { x: e.offsetX, y: e.offsetY };
    this.moved = 99;
    this.app.view.zoom(far(now) / Math.max(1, far(last)), (now.x + other.x) / 2);
    this.app.view.pan((now.x - last.x) / 2, (now.y - last.y) / 2);
  }

  _up(e) {
    const wasOne = this.pointers.size === 1;
    this._lift(e);
    if (!wasOne || this.moved > 4) return;
    const found = hit(this.app.painter, e.offsetX, e.offsetY);
    if (found?.kind === "fold") this.app.toggleFold();
    else if (found?.kind === "away") this.app.toggleLanes();
    else this.app.select(found);
  }

  _lift(e) {
    this.pointers.delete(e.pointerId);
    this.canvas.classList.remove("grabbing");
  }
}
