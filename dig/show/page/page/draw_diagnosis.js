// A diagnosis in the picture: the way of the failure as one path, candidates by number.

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
