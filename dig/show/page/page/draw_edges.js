// Edges: solid if productive, dashed if not, in the colour of their fate, which the shape at their
// end tells as well. They are gathered by look and drawn at once.

import { firstBy } from "./axis.js";
import { arrive, FATE_COLOUR, FATE_DASH } from "./glyphs.js";

const MOST_EDGES = 2500; // in sight; beyond, only what is in focus is drawn
const MOST_CURVES = 900; // beyond, lines are straight and have no ends
const MOST_DIM = 300; // beyond, what is not in focus is left out

/** Draws edges; returns how many, and whether there are more in sight than are drawn. */
export function drawEdges(painter) {
  const { view } = painter;
  const tries = [
    () => inSight(painter, painter.model.edges, 0),
    () =>
      view.focus ? inSight(painter, focused(view), 0) : inSight(painter, painter.model.edges, 1),
    () => inSight(painter, painter.model.edges, 2),
    () => [],
  ];
  let drawn = null,
    tried = 0;
  while (!drawn || drawn.length > MOST_EDGES) drawn = tries[tried++]();
  const isMore = tried > 1;
  if (view.focus && drawn.length > MOST_DIM) drawn = drawn.filter(({ edge }) => !isDim(view, edge));
  if (!painter.isDense) generation(painter, isMore && !drawn.length);
  delivery(painter, drawn, drawn.length <= MOST_CURVES);
  return { edges: drawn.length, isMore };
}

/** The edges that are in sight, of some in order of their activations; no more than can be drawn.
 * `ends`: of how many of its ends one has to see the moment. */
function inSight(painter, edges, ends) {
  const { view, layout, left, right } = painter,
    seen = [];
  const { fromAt, startAt } = layout;
  const low = view.top - view.laneHeight,
    high = view.top + view.height;
  const startOf = (edge) => startAt[edge.activation.i];
  for (
    let i = firstBy(edges, startOf, left);
    i < edges.length && seen.length <= MOST_EDGES;
    i += 1
  ) {
    const edge = edges[i],
      from = fromAt[edge.i],
      to = startOf(edge);
    if (from > right || (from >= left) + (to <= right) < ends) continue;
    const a = view.position[edge.from?.lane ?? edge.event.lane],
      b = view.position[edge.activation.lane];
    if (Math.max(a, b) * view.laneHeight < low || Math.min(a, b) * view.laneHeight > high) continue;
    const fate = view.fateOf(edge);
    if (view.showsEdge(edge, fate)) seen.push({ edge, fate });
  }
  return seen;
}

/** The edges between nodes in focus. */
function focused(view) {
  const edges = [...view.focus].flatMap((node) => (node.kind === "activation" ? node.inputs : []));
  return edges.filter((edge) => view.focus.has(edge.event)).sort((a, b) => a.i - b.i);
}

function isDim(view, edge) {
  return view.isDim(edge.event) || view.isDim(edge.activation);
}

/** From the end of an activation down to what it generated. */
function generation(painter, isFaint) {
  const { ctx, view, layout, model, theme, shape } = painter;
  if (shape.isTight || isFaint) return;
  for (const dim of [true, false]) {
    if (dim && (!view.focus || painter.inSight.length > MOST_DIM)) continue;
    ctx.beginPath();
    for (const i of painter.inSight) {
      const event = model.events[i];
      if (!event.by || view.isDim(event) !== dim || !view.showsActivation(event.by)) continue;
      const { x, y } = painter.seat(i);
      const from = view.x(layout.endOf(event.by.i)) - 1;
      const top = view.y(event.by.lane) + shape.pad + shape.bar;
      ctx.moveTo(from, top);
      if (x - from < 14) ctx.lineTo(from, y);
      else ctx.lineTo(from, y - 3);
      ctx.lineTo(x - 3, y);
    }
    ctx.setLineDash([]);
    ctx.strokeStyle = theme.edge;
    ctx.lineWidth = 1;
    ctx.globalAlpha = dim ? 0.1 : 0.75;
    ctx.stroke();
  }
  ctx.globalAlpha = 1;
}

function delivery(painter, drawn, isCurved) {
  const { ctx, view, theme } = painter;
  const looks = new Map(); // fate and dim -> edges
  for (const one of drawn) {
    const key = `${one.fate}|${isDim(view, one.edge)}`;
    if (!looks.has(key)) looks.set(key, []);
    looks.get(key).push(one.edge);
  }
  const crowd = Math.max(0.35, Math.min(0.85, 1.1 - drawn.length / 2500));
  for (const [key, edges] of [...looks].sort(byWeight)) {
    const [fate, dim] = [Number(key.split("|")[0]), key.endsWith("true")];
    ctx.strokeStyle = ctx.fillStyle = theme[FATE_COLOUR[fate]];
    ctx.globalAlpha = dim ? 0.09 : fate > 0 ? Math.min(1, crowd + 0.15) : crowd;
    ctx.lineWidth = drawn.length > 300 ? 1 : fate > 0 ? 1.4 : 1.1; // 1 is drawn much faster
    ctx.setLineDash(FATE_DASH[fate]);
    const ends = path(painter, edges, isCurved);
    ctx.setLineDash([]);
    if (isCurved && !painter.shape.isTight) for (const end of ends) arrive(ctx, fate, end);
  }
  ctx.globalAlpha = 1;
  ctx.setLineDash([]);
}

/** Dim edges lie below, and those of failures above. */
function byWeight([a], [b]) {
  const weight = (key) => (key.endsWith("true") ? -10 : 0) + Number(key.split("|")[0]);
  return weight(a) - weight(b);
}

function path(painter, edges, isCurved) {
  const { ctx } = painter,
    ends = [];
  ctx.beginPath();
  for (const edge of edges) {
    const at = clipped(ways(painter, edge), painter.view.width);
    ctx.moveTo(at.sx, at.sy);
    if (!isCurved) ctx.lineTo(at.x, at.y);
    else if (at.turn) {
      const bend = Math.min(60, Math.abs(at.y - at.sy) * 0.45) * at.turn;
      ctx.bezierCurveTo(at.sx, at.sy + bend, at.x, at.y - bend, at.x, at.y - 4 * at.turn);
    } else {
      const bend = Math.max(12, Math.min(90, (at.x - at.sx) * 0.45));
      ctx.bezierCurveTo(at.sx + bend, at.sy, at.x - bend, at.y, at.x - 3, at.y);
    }
    ends.push(at);
  }
  ctx.stroke();
  return ends;
}

/** The beginning of an edge: at its event or, after a delay or reroute, at the activation that decided
 * it; if healing redirected the event, beside the event at that moment. */
function origin(painter, { i, event, from }) {
  if (!from || painter.view.position[from.lane] < 0) return painter.seat(event.i);
  const { view, layout, shape } = painter,
    x = view.x(layout.fromAt[i]);
  if (!from.activation) return { ...painter.seat(event.i), x };
  return { x, y: view.y(from.lane) + shape.pad + shape.bar / 2, s: 0 };
}

const BEYOND = 400; // pixels out of sight to which an edge is drawn

/** An edge without what is far out of sight, which costs much where lines are dashed. */
function clipped(at, width) {
  const { sx, sy, x, y } = at,
    along = (to) => sy + ((to - sx) / (x - sx)) * (y - sy),
    within = (one) => Math.max(-BEYOND, Math.min(width + BEYOND, one));
  if (within(sx) === sx && within(x) === x) return at;
  if (sx === x) return at;
  return { ...at, sx: within(sx), sy: along(within(sx)), x: within(x), y: along(within(x)) };
}

/** The ends of an edge: at the side of a bar or, if there is no place, from above or below. */
function ways(painter, edge) {
  const { view, layout, shape } = painter,
    { activation } = edge;
  const seat = origin(painter, edge),
    top = view.y(activation.lane) + shape.pad;
  const { inputs } = activation;
  const share = inputs.length > 1 ? (inputs.indexOf(edge) + 0.5) / inputs.length : 0.5;
  const x = view.x(layout.startAt[activation.i]);
  if (x - seat.x > 26 || shape.isTight) {
    return { sx: seat.x + seat.s, sy: seat.y, x, y: top + shape.bar * share, turn: 0 };
  }
  const turn = seat.y < top ? 1 : -1;
  const end = Math.max(x + 8, Math.min(view.x(layout.endOf(activation.i)), x + 30));
  return {
    sx: seat.x,
    sy: seat.y + turn * seat.s,
    turn,
    x: x + 4 + (end - x - 8) * share,
    y: turn > 0 ? top : top + shape.bar,
  };
}
