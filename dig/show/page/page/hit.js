// The thing below the pointer.

import { TOP } from "./layout.js";

const NEAR = 8;

/** The node, lane, finding or fold at a pixel of the picture, or null. */
export function hit(painter, x, y) {
  const { view, layout, model, shape } = painter;
  if (y < TOP) return flagAt(painter, x, y);
  if (y > view.bottom) return view.away ? { kind: "away" } : null;
  const lane = view.laneAt(y);
  if (x < view.gutter) return lane;
  const fold = (painter.folds ?? []).find((one) => x >= one.x0 - 3 && x <= one.x1 + 3);
  if (fold) return { kind: "fold", ...fold };
  return eventAt(painter, x, y) ?? (lane && barAt(lane, view, layout, shape, x, y));
}

function flagAt(painter, x, y) {
  if (y < 24) return null;
  const mark = y > 38 && painter.marks.find((one) => Math.abs(one.x - x) <= 6);
  if (mark) return painter.model.finding(String(mark.heal.finding)) ?? null;
  const flag = painter.flags.findLast((one) => x >= one.x - 1 && x <= one.x + one.width);
  if (!flag) return null;
  const next = flag.all.indexOf(painter.view.selected) + 1;
  return flag.all[next % flag.all.length];
}

/** The nearest event; of several in one place, the next after the one that is chosen. */
function eventAt(painter, x, y) {
  let best = [],
    least = NEAR;
  const isPinned = y < painter.view.pinned;
  for (const i of painter.seated) {
    if (painter.view.top > 0 && isPinned !== (painter.model.events[i].lane === 0)) continue;
    const seat = painter.seat(i);
    const far = Math.max(Math.abs(seat.x - x), Math.abs(seat.y - y));
    if (far < least) best = [];
    if (far <= least && far < NEAR) {
      least = far;
      best.push(painter.model.events[i]);
    }
  }
  return best[(best.indexOf(painter.view.selected) + 1) % best.length] ?? null;
}

function barAt(lane, view, layout, shape, x, y) {
  const top = view.y(lane.i) + shape.pad;
  if (y < top - 3 || y > top + shape.bar + 5) return null;
  let best = null,
    least = 5;
  for (const one of lane.activations) {
    if (!view.showsActivation(one)) continue;
    const x0 = view.x(layout.startAt[one.i]),
      x1 = view.x(layout.endOf(one.i));
    const far = x < x0 ? x0 - x : x > x1 ? x - x1 : 0;
    if (far < least) {
      least = far;
      best = one;
    }
    if (x0 > x + 5) break;
  }
  return best;
}
