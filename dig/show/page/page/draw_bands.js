// Stretches that the head of the page names, such as the subtasks of a conversation.

import { TOP } from "./layout.js";

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
