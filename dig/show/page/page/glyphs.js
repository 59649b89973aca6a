// The shapes: an event's type is told by its shape, a fate by dash and end, colour comes on top.

export const FATE_DASH = { "-1": [2, 3], 0: [], 1: [5, 4], 2: [9, 4, 2, 4], 3: [2, 2.5] };
export const FATE_COLOUR = { "-1": "edge", 0: "edge", 1: "delay", 2: "reroute", 3: "discard" };

const KNOWN = ["problem", "solution", "raw_data", "message", "notice", "system", "final"];

const LIKE = {
  // beliefs of an investigation
  origin: "problem",
  symptom: "message",
  healthy: "notice",
  defer: "raw_data",
  // roles in a conversation
  planner: "problem",
  worker: "message",
  tool: "raw_data",
  outside: "notice",
};

/** A line in the pen's colour and width or in others, dashed if it is said how. */
export function line(ctx, x0, y0, x1, y1, { colour = ctx.strokeStyle, width = ctx.lineWidth, dash = [] } = {}) {
  Object.assign(ctx, { strokeStyle: colour, lineWidth: width });
  ctx.setLineDash(dash);
  ctx.beginPath();
  ctx.moveTo(x0, y0);
  ctx.lineTo(x1, y1);
  ctx.stroke();
  ctx.setLineDash([]);
}

/** The name of the shape and colour of a type of event; types of a user's own share one. */
export function shapeOf(type) {
  return LIKE[type] ?? (KNOWN.includes(type) ? type : "other");
}

/** Adds the outline of an event to the current path; `s` is half its size. */
export function outline(ctx, shape, x, y, s) {
  switch (shape) {
    case "problem": // a wedge: here it begins
      ctx.moveTo(x - s, y - s);
      ctx.lineTo(x + s * 1.15, y);
      ctx.lineTo(x - s, y + s);
      ctx.closePath();
      break;
    case "message":
    case "notice":
      ctx.moveTo(x + s, y);
      ctx.arc(x, y, shape === "notice" ? s * 0.7 : s, 0, 2 * Math.PI);
      break;
    case "system":
      ctx.moveTo(x, y - s * 1.25);
      ctx.lineTo(x + s * 1.25, y);
      ctx.lineTo(x, y + s * 1.25);
      ctx.lineTo(x - s * 1.25, y);
      ctx.closePath();
      break;
    case "final":
      star(ctx, x, y, s * 1.6);
      break;
    default:
      ctx.rect(x - s, y - s, 2 * s, 2 * s);
  }
}

/** The shape is drawn as its outline alone. */
export function isHollow(shape) {
  return shape === "raw_data" || shape === "notice";
}

function star(ctx, x, y, r) {
  for (let i = 0; i < 10; i += 1) {
    const angle = (i * Math.PI) / 5 - Math.PI / 2,
      far = i % 2 ? r * 0.48 : r;
    ctx[i ? "lineTo" : "moveTo"](x + far * Math.cos(angle), y + far * Math.sin(angle));
  }
  ctx.closePath();
}

/** The end of a delivery edge, at the activation: its shape tells the fate. `turn`: from above (1),
 * from below (-1) or from the side (0). */
export function arrive(ctx, fate, { x, y, turn = 0 }) {
  ctx.save();
  ctx.translate(x, y);
  ctx.rotate((turn * Math.PI) / 2);
  ctx.beginPath();
  END[fate]?.(ctx);
  ctx.restore();
}

const END = {
  0: (ctx) => {
    ctx.moveTo(0, 0);
    ctx.lineTo(-6, -3);
    ctx.lineTo(-6, 3);
    ctx.fill();
  },
  1: (ctx) => {
    ctx.arc(-4, 0, 2.8, 0, 2 * Math.PI);
    ctx.stroke();
  },
  2: (ctx) => {
    ctx.moveTo(-8, 0);
    ctx.lineTo(-4, -3.5);
    ctx.lineTo(0, 0);
    ctx.lineTo(-4, 3.5);
    ctx.fill();
  },
  3: (ctx) => {
    ctx.moveTo(-7, -3);
    ctx.lineTo(-1, 3);
    ctx.moveTo(-1, -3);
    ctx.lineTo(-7, 3);
    ctx.stroke();
  },
};

/** A pattern of slanted lines: an activation that only waited. */
export function hatch(ctx, colour, ground) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 8;
  const pen = tile.getContext("2d");
  pen.fillStyle = ground;
  pen.fillRect(0, 0, 8, 8);
  pen.strokeStyle = colour;
  pen.lineWidth = 1.4;
  for (const shift of [-8, 0, 8]) {
    pen.moveTo(shift, 8);
    pen.lineTo(shift + 8, 0);
  }
  pen.stroke();
  return ctx.createPattern(tile, "repeat");
}
