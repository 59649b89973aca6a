// A diagnosis in the picture: the way of the failure as one path, candidates by number; and the
// stretches that a head names.

import { TOP } from "./layout.js";

const MOST_FLAGS = 9;
const RADIUS = 8;

/** The activations by which the failure went on, as one path below the bars. */
export function drawChain({ ctx, view, layout, model, theme, shape }) {
  const chain = (model.head.cause?.chain ?? []).map((step) => model.activations[step]);
  const points = chain
    .filter((one) => one && view.showsActivation(one) && view.position[one.lane] >= 0)
    .flatMap((one) => {
      const y = view.y(one.lane) + shape.pad + shape.bar / 2;
      return [layout.startAt[one.i], layout.endAt[one.i]].map((place) => [view.x(place), y]);
    });
  if (points.length < 3) return;
  ctx.save();
  ctx.globalAlpha = 0.35;
  ctx.strokeStyle = theme.accent;
  ctx.lineWidth = 6;
  ctx.lineJoin = "round";
  ctx.beginPath();
  for (const [x, y] of points) ctx.lineTo(x, y);
  ctx.stroke();
  ctx.restore();
}

/** The number of each candidate, at the beginning of its activation or beside its event. */
export function drawCandidates(painter) {
  const { ctx, view, layout, model, theme, shape, font } = painter;
  painter.candidates = [];
  for (const [i, { node }] of (model.head.cause?.candidates ?? []).slice(0, MOST_FLAGS).entries()) {
    const one = node === null ? null : model.node(node);
    if (!one || !painter.isLaneSeen(one.lane)) continue;
    const place = one.kind === "event" ? layout.eventAt[one.i] : layout.startAt[one.i],
      [x, y] = [view.x(place), view.y(one.lane) + shape.pad];
    if (x < view.gutter || x > view.width) continue;
    ctx.fillStyle = theme.accent;
    ctx.beginPath();
    ctx.arc(x, y, RADIUS, 0, 2 * Math.PI);
    ctx.fill();
    ctx.fillStyle = theme.panel;
    ctx.font = `600 11px ${font}`;
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    ctx.fillText(String(i + 1), x, y + 0.5);
    ctx.textAlign = "start";
    painter.candidates.push(node);
  }
}

/** Stretches that the head of the page names, such as the subtasks of a conversation. */
export function drawBands({ ctx, view, layout, model, theme, font }) {
  const middle = Math.max(TOP + 10, view.y(0) + view.laneHeight - 10); // where little else is
  const place = (t) => layout.axis.place({ t, us: model.times[t] ?? model.us });
  (model.head.bands ?? []).forEach(({ from, to, says }, i) => {
    const x0 = view.x(place(from)),
      x1 = view.x(place(to));
    if (i % 2 === 0) {
      ctx.fillStyle = theme["line-2"];
      ctx.globalAlpha = 0.5;
      ctx.fillRect(x0, TOP, x1 - x0, view.height - TOP);
      ctx.globalAlpha = 1;
    }
    ctx.save();
    ctx.beginPath();
    ctx.rect(x0, middle - 10, x1 - x0 - 4, 20);
    ctx.clip();
    ctx.font = `600 11px ${font}`;
    ctx.textBaseline = "middle";
    ctx.fillStyle = theme["ink-2"];
    ctx.fillText(says, Math.max(x0, view.gutter) + 5, middle);
    ctx.restore();
  });
}
