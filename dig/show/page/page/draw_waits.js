// How much lies in each buffer, as a strip below the bars: so one sees what waits.

export function drawWaits(painter) {
  const { ctx, view, layout, theme, shape } = painter;
  if (view.laneHeight < 16) return;
  ctx.fillStyle = theme.wait;
  for (const lane of view.order) {
    if (!painter.isLaneSeen(lane.i) || !lane.load.length) continue;
    const y = view.y(lane.i) + shape.pad + shape.bar + 1.5;
    let from = -1e6,
      n = 0,
      peak = 0; // peak: in what is too short to be seen by itself
    const until = (x) => {
      if (peak > n) strip(painter, from, from + 0.7, y, peak);
      strip(painter, peak > n ? from + 0.7 : from, x, y, n);
      [from, peak] = [x, 0];
    };
    for (const step of lane.load) {
      const x = view.x(layout.axis.place(step));
      if (step.t > view.until || x > view.width) break;
      if (x - from >= 0.7) until(x);
      else peak = Math.max(peak, n);
      n = step.n;
    }
    until(view.x(painter.now()));
  }
  ctx.globalAlpha = 1;
}

function strip({ ctx, view }, from, to, y, n) {
  const x = Math.max(from, view.gutter);
  if (!n || to <= x) return;
  ctx.globalAlpha = Math.min(0.95, 0.25 + 0.17 * n) * (view.focus ? 0.3 : 1);
  ctx.fillRect(x, y, Math.min(to, view.width) - x, 3);
}
