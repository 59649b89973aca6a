// The whole run in a strip: how busy each lane is, where findings are, and what the picture shows.

import { pen } from "./dom.js";
import { WORTH_COLOUR } from "./draw_frame.js";
import { LEAD, MARGINS } from "./view.js";
import { rank, worth } from "./words.js";

export class Minimap {
  constructor(app, canvas) {
    this.app = app;
    this.canvas = canvas;
    this.key = "";
    this.ground = document.createElement("canvas");
    let isDown = false;
    const go = (e) => app.view.center(this.place(e.offsetX));
    canvas.addEventListener("pointerdown", (e) => {
      isDown = true;
      canvas.setPointerCapture(e.pointerId);
      go(e);
    });
    canvas.addEventListener("pointermove", (e) => isDown && go(e));
    canvas.addEventListener("pointerup", () => {
      isDown = false;
    });
  }

  /** Pixels a place, and the pixel of a place: those of the picture when it shows all. */
  get scale() {
    const { view } = this.app;
    return (view.plot - MARGINS) / view.span;
  }

  x(place) {
    return this.app.view.gutter + LEAD + place * this.scale;
  }

  place(x) {
    return (x - this.app.view.gutter - LEAD) / this.scale;
  }

  paint() {
    const { view, painter } = this.app,
      { theme } = painter,
      left = view.gutter;
    this._ground();
    const ctx = pen(this.canvas),
      width = this.canvas.clientWidth,
      tall = this.canvas.clientHeight;
    ctx.drawImage(this.ground, 0, 0, width, tall);
    const x0 = Math.max(left, this.x(view.from)),
      x1 = Math.max(x0 + 4, Math.min(width, this.x(view.place(view.width))));
    ctx.fillStyle = theme.panel;
    ctx.globalAlpha = 0.66;
    ctx.fillRect(left, 0, x0 - left, tall);
    ctx.fillRect(x1, 0, width - x1, tall);
    ctx.globalAlpha = 1;
    ctx.strokeStyle = theme.accent;
    ctx.lineWidth = 1.5;
    ctx.beginPath();
    ctx.roundRect(x0, 1, x1 - x0, tall - 2, 3);
    ctx.stroke();
  }

  /** The part that does not change while the picture is moved. */
  _ground() {
    const { model, view, layout, painter } = this.app,
      { theme } = painter;
    const key = [
      this.app.pace.version,
      view.axis,
      view.folded,
      view.order.length,
      view.span,
      theme.ground,
      this.canvas.clientWidth,
    ].join("|");
    if (key === this.key) return;
    this.key = key;
    const width = this.canvas.clientWidth,
      tall = this.canvas.clientHeight;
    const ratio = devicePixelRatio || 1;
    this.ground.width = width * ratio;
    this.ground.height = tall * ratio;
    const ctx = this.ground.getContext("2d");
    ctx.scale(ratio, ratio);
    ctx.fillStyle = theme.panel;
    ctx.fillRect(0, 0, width, tall);
    ctx.font = `11px ${painter.font}`;
    ctx.textBaseline = "middle";
    ctx.fillStyle = theme["ink-3"];
    ctx.fillText("whole run", 14, tall / 2);
    const each = (tall - 12) / Math.max(1, view.order.length);
    ctx.fillStyle = theme.density;
    view.order.forEach((lane, i) => {
      let last = -1;
      for (const one of lane.activations) {
        const x0 = this.x(layout.startAt[one.i]);
        const x1 = Math.max(x0 + 0.8, this.x(layout.endOf(one.i)));
        if (x1 - last < 0.6) continue;
        ctx.fillRect(x0, 8 + i * each, x1 - x0, Math.max(1, each * 0.62));
        last = x1;
      }
    });
    const worstLast = [...model.findings].sort((a, b) => rank(b) - rank(a));
    for (const finding of worstLast) {
      ctx.fillStyle = theme[WORTH_COLOUR[worth(finding)]];
      ctx.fillRect(this.x(layout.axis.place(finding)) - 1, 2, 2, 5);
    }
  }
}
