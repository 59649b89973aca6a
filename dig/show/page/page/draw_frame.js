// The frame of the picture: lanes and their names, the axis of time, flags of findings, what
// is folded, and the moment that is shown.

import { firstBy, ticks } from "./axis.js";
import { line } from "./glyphs.js";
import { TOP } from "./layout.js";
import { clock, counted, rank, seconds, worth } from "./words.js";

/** The colour of a finding in the picture, by what it is worth. */
export const WORTH_COLOUR = {
  error: "error",
  warning: "warning",
  notice: "note",
  silenced: "silenced",
};

export function drawFrame(painter) {
  lanes(painter);
  axis(painter);
}

function lanes({ ctx, view, theme, font, hover }) {
  ctx.save();
  ctx.beginPath();
  ctx.rect(0, TOP, view.width, view.height - TOP);
  ctx.clip();
  ctx.textBaseline = "middle";
  view.order.toReversed().forEach((lane, n) => {
    const i = view.order.length - 1 - n,
      y = view.y(lane.i),
      tall = view.laneHeight;
    if (y + tall < view.pinned - tall || y > view.bottom) return;
    if (i % 2 === 0) {
      ctx.fillStyle = theme.band;
      ctx.fillRect(view.gutter, y, view.plot, tall);
    }
    const isChosen = view.selected === lane;
    if (isChosen || hover === lane || i === 0) {
      ctx.fillStyle = isChosen || hover === lane ? theme.band : theme.ground;
      ctx.fillRect(0, y, view.gutter - 1, tall);
    }
    if (isChosen) {
      ctx.fillStyle = theme.accent;
      ctx.fillRect(0, y, 3, tall);
    }
    const isAside = lane.i === 0 || (view.focusLanes && !view.focusLanes.has(lane.i));
    ctx.font = `${isChosen ? 600 : 400} ${tall < 14 ? 10 : 12}px ${font}`;
    ctx.fillStyle = isAside ? theme["ink-3"] : theme.ink;
    const highest = i ? Math.min(view.pinned + 9, y + tall - 9) : TOP + 6; // in sight with its lane
    const middle = Math.max(y + Math.min(tall / 2, 22), highest);
    const isNamed = tall >= 11 || isChosen || i % Math.ceil(12 / tall) === 0;
    if (isNamed)
      ctx.fillText(
        fitted(ctx, lane.i === 0 ? "outside, healing" : lane.id, view.gutter - 26),
        14,
        middle,
      );
    if (tall >= 44 && lane.i) {
      ctx.font = `10.5px ${font}`;
      ctx.fillStyle = theme["ink-3"];
      const count = counted(lane.turns, "turn");
      if (middle + 20 < y + tall)
        ctx.fillText(lane.present ? count : `${count}, left`, 14, middle + 15);
    }
  });
  ctx.restore();
}

function fitted(ctx, text, room) {
  if (ctx.measureText(text).width <= room) return text;
  let cut = text.slice(0, 40);
  while (cut && ctx.measureText(`${cut}…`).width > room) cut = cut.slice(0, -1);
  return `${cut}…`;
}

function axis({ ctx, view, layout, theme, font }) {
  ctx.fillStyle = theme.panel;
  ctx.fillRect(0, 0, view.width, TOP);
  line(ctx, 0, TOP - 0.5, view.width, TOP - 0.5, { colour: theme.line, width: 1 });
  line(ctx, view.gutter - 0.5, 0, view.gutter - 0.5, view.height);
  ctx.font = `11px ${font}`;
  ctx.textBaseline = "middle";
  ctx.fillStyle = theme["ink-3"];
  ctx.fillText(view.axis === "wall" ? "time" : "record", 14, 13);
  const place = layout.axis;
  const least = 92 / view.scale;
  const from = Math.max(0, place.at(view.from)),
    to = place.at(view.place(view.width));
  const { values, step } = ticks(from, Math.min(to, Math.max(place.value(place.model.now), 1)), least);
  let free = view.gutter;
  ctx.strokeStyle = theme["line-2"];
  for (const value of values) {
    const x = Math.round(view.x(place.fold(value))) + 0.5;
    if (x < view.gutter || x < free) continue;
    const text = view.axis === "wall" ? clock(value, step) : String(Math.round(value));
    line(ctx, x, TOP, x, view.height);
    ctx.fillText(text, x + 5, 13);
    line(ctx, x, 6, x, 20);
    free = x + ctx.measureText(text).width + 16;
  }
}

/** Flags at the moments of findings; those that would lie on one another become one. */
export function drawFlags(painter) {
  const { ctx, view, layout, model, theme, font } = painter;
  const flags = [];
  ctx.font = `600 10px ${font}`;
  for (const finding of model.findings) {
    if (!view.showsFinding(finding)) continue;
    const x = view.x(layout.axis.place(finding));
    if (x < view.gutter || x > view.width) continue;
    const last = flags[flags.length - 1];
    if (last && x - last.x < last.room + (last.all.length > 1 ? 22 : 0)) last.all.push(finding);
    else flags.push({ x, all: [finding], room: ctx.measureText(finding.pattern).width + 14 });
  }
  for (const flag of flags) {
    const worst = flag.all.reduce((a, b) => (rank(b) < rank(a) ? b : a));
    const first = flag.all.find((one) => one === view.selected) ?? worst;
    const isError = worth(worst) === "error";
    const colour = theme[WORTH_COLOUR[worth(worst)]];
    const text = flag.all.length > 1 ? `${first.pattern} +${flag.all.length - 1}` : first.pattern;
    const width = ctx.measureText(text).width + 10;
    flag.width = width;
    const isChosen = flag.all.includes(view.selected);
    ctx.strokeStyle = colour;
    ctx.globalAlpha = isChosen ? 0.9 : 0.22;
    ctx.lineWidth = isChosen ? 1.5 : 1;
    const lines = isChosen ? [view.selected] : flag.all;
    for (const x of new Set(lines.map((one) => Math.round(view.x(layout.axis.place(one))))))
      line(ctx, x, 42, x, view.bottom);
    ctx.globalAlpha = 1;
    ctx.lineWidth = 1.3;
    ctx.beginPath();
    ctx.roundRect(flag.x, 26, width, 17, [0, 4, 4, 0]);
    ctx.fillStyle = isError ? colour : theme.panel;
    ctx.fill();
    ctx.setLineDash(worth(worst) === "silenced" ? [3, 2] : []);
    ctx.stroke();
    ctx.setLineDash([]);
    ctx.fillStyle = isError ? theme.panel : colour;
    ctx.fillText(text, flag.x + 5, 35);
  }
  painter.flags = flags;
  marks(painter);
  ctx.fillStyle = theme.panel;
  ctx.fillRect(0, 24, view.gutter - 1, 24);
  ctx.font = `11px ${font}`;
  ctx.fillStyle = theme["ink-3"];
  ctx.fillText("findings", 14, 35);
}

/** A diamond at each moment of healing; those that would lie on one another become one. */
function marks(painter) {
  const { ctx, view, layout, model, theme } = painter;
  painter.marks = [];
  ctx.fillStyle = theme.heal;
  ctx.strokeStyle = theme.panel;
  ctx.lineWidth = 1.5;
  let last = -Infinity;
  for (const heal of model.heals) {
    const x = view.x(layout.axis.place(heal));
    const isShown = heal.t <= view.until && heal.t >= view.since && heal.action !== "refused";
    if (!isShown || x < view.gutter || x > view.width || x - last < 4) continue;
    last = x;
    painter.marks.push({ x, heal });
    ctx.beginPath();
    for (const [dx, dy] of [[0, -5], [5, 0], [0, 5], [-5, 0]]) ctx.lineTo(x + dx, 44 + dy);
    ctx.closePath();
    ctx.stroke();
    ctx.fill();
  }
}

export function drawFolds(painter) {
  const { ctx, view, layout, theme, font } = painter;
  ctx.font = `600 11px ${font}`;
  ctx.textBaseline = "middle";
  painter.folds = [];
  for (const fold of layout.axis.folds) {
    const x0 = view.x(fold.place),
      x1 = view.x(fold.place + fold.size);
    if (x1 < view.gutter || x0 > view.width) continue;
    painter.folds.push({ fold, x0, x1 });
    ctx.fillStyle = theme["line-2"];
    ctx.fillRect(x0, TOP, Math.max(2, x1 - x0), view.height - TOP);
    ctx.strokeStyle = theme["ink-3"];
    ctx.lineWidth = 1;
    for (const x of [x0, x1]) {
      ctx.beginPath();
      for (let y = TOP, k = 0; y < view.height; y += 7, k += 1) ctx.lineTo(x + (k % 2 ? 3 : -1), y);
      ctx.stroke();
    }
    const { text } = fold;
    if (ctx.measureText(text).width < x1 - x0 - 4) {
      ctx.fillStyle = theme["ink-2"];
      ctx.fillText(text, (x0 + x1 - ctx.measureText(text).width) / 2, view.height - 12);
    }
  }
}

/** A dashed line where another owner goes on, or the server was away: time stood still before. */
export function drawOutages(painter) {
  const { ctx, view, layout, model, theme, font } = painter;
  const free = [0, 0, 0]; // by row of labels
  painter.outages = [];
  for (const outage of model.outages) {
    const x = Math.round(view.x(layout.axis.place(outage))) + 0.5;
    if (outage.t > view.until || x < view.gutter || x > view.width) continue;
    line(ctx, x, TOP, x, view.bottom, { colour: theme.accent, width: 1.2, dash: [5, 4] });
    ctx.font = `600 11px ${font}`;
    const width = ctx.measureText(outage.mark).width + 14;
    const left = Math.max(view.gutter + 2, Math.min(x - width / 2, view.width - width - 2));
    const row = free.findIndex((end) => left >= end);
    if (row < 0) continue;
    pill(painter, outage.mark, x, view.bottom - 22 - 21 * row, theme.accent);
    free[row] = left + width + 4;
    painter.outages.push({ x, outage });
  }
}

/** Below the lanes: how many have no part in the chosen finding. A click shows them. */
export function drawFoot({ ctx, view, theme, font }) {
  if (!view.foot) return;
  ctx.fillStyle = theme.panel;
  ctx.fillRect(0, view.bottom, view.width, view.foot);
  line(ctx, 0, view.bottom + 0.5, view.width, view.bottom + 0.5, { colour: theme.line });
  if (!view.away) return;
  const texts = view.hasAllLanes
    ? [`fold ${counted(view.away, "lane")}`, "fold"]
    : [`${counted(view.away, "lane")} folded`, `+${view.away}`];
  ctx.font = `11px ${font}`;
  ctx.textBaseline = "middle";
  ctx.fillStyle = theme.accent;
  const text = texts.find((one) => ctx.measureText(one).width < view.gutter - 18);
  if (text) ctx.fillText(text, 14, view.bottom + view.foot / 2 + 1);
}

/** The stretch that was measured: how long it is, and what is in it. */
export function drawMeasured(painter) {
  const { ctx, view, layout, model, theme, font } = painter;
  if (!view.measured) return;
  const [from, to] = view.measured,
    { axis } = layout,
    x0 = view.x(from),
    x1 = view.x(to);
  ctx.fillStyle = ctx.strokeStyle = theme.accent;
  ctx.globalAlpha = 0.1;
  ctx.fillRect(x0, TOP, x1 - x0, view.height);
  ctx.globalAlpha = 1;
  for (const x of [x0, x1]) line(ctx, x, TOP, x, view.height, { width: 1 });
  const within = (places) => firstBy(places, (at) => at, to) - firstBy(places, (at) => at, from);
  const long = axis.at(to) - axis.at(from);
  const text = [
    view.axis === "wall" ? seconds(long) : counted(Math.round(long), "record"),
    counted(within(layout.startAt), "turn"),
    counted(within(layout.eventAt), "event"),
  ].join(" · ");
  ctx.font = `600 11px ${font}`;
  pill(painter, text, (x0 + x1) / 2, TOP + 4, theme.accent);
}

/** A text on a ground of its own, around a pixel and within the picture. */
export function pill({ ctx, view, theme, font }, text, middle, y, colour) {
  ctx.font = `600 11px ${font}`;
  const width = ctx.measureText(text).width + 14,
    left = Math.max(view.gutter + 2, Math.min(middle - width / 2, view.width - width - 2));
  ctx.fillStyle = colour;
  ctx.beginPath();
  ctx.roundRect(left, y, width, 18, 9);
  ctx.fill();
  ctx.fillStyle = theme.panel;
  ctx.textBaseline = "middle";
  ctx.fillText(text, left + 7, y + 9.5);
}

/** The moment that is shown; what comes later is not in the picture. */
export function drawMoment(painter) {
  const { ctx, view, theme } = painter;
  if (view.at === null) return;
  const x = view.x(painter.now());
  ctx.fillStyle = theme.ground;
  ctx.globalAlpha = 0.55;
  ctx.fillRect(x + 8, TOP, view.width, view.height);
  ctx.globalAlpha = 1;
  line(ctx, x, TOP, x, view.height, { colour: theme.accent, width: 1.5 });
}

/** The events in each buffer, as a strip below the bars: so one sees what waits. */
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
