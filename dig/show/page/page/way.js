// The paths that prove a finding, hop by hop: an event, whom it came from, what it says, and what
// agents did with it. What an earlier path has shown is not shown again.

import { h } from "./dom.js";
import { fate, said } from "./pieces.js";
import { origin, PAST } from "./words.js";

const MOST_HOPS = 40;

/** A list for each path that has something new. */
export function way(app, paths) {
  const shown = new Set();
  let left = MOST_HOPS;
  return paths.map((path) => {
    const all = hops(app.model, path.nodes),
      fresh = all.filter(({ key }) => !shown.has(key)),
      rows = fresh.slice(0, left);
    left -= rows.length;
    for (const { key } of all) shown.add(key);
    if (!rows.length) return null;
    return h("ol.rows.way", { "aria-label": path.says },
      rows.map((hop) => row(app, hop)),
      rows.length < fresh.length
        ? h("li", { text: `and ${fresh.length - rows.length} hops more` })
        : null,
    );
  });
}

/** The events of a path, each with the activations that the path goes on to. */
function hops(model, ids) {
  const found = [];
  for (const node of ids.map((id) => model.node(id)).filter(Boolean)) {
    if (node.kind === "event") found.push({ event: node, by: [] });
    else if (found.length) found.at(-1).by.push(node);
  }
  for (const hop of found) hop.key = [hop.event, ...hop.by].map((node) => node.id).join();
  return found;
}

function row(app, { event, by }) {
  return h("li",
    h("div.what",
      app.link(event),
      ` ${event.type} ${origin(event)}`,
      said(app, event),
      grouped(event, by).map(({ which, agent, all }) =>
        h("div",
          fate(which, `${PAST[which]} ${agent}${all.length > 1 ? `, ${all.length} times` : ""} `),
          all.slice(0, 6).flatMap((one) => [app.link(one), " "]),
        ),
      ),
    ),
  );
}

/** The deeds of agents with an event; the same by the same agent once, with its count. */
function grouped(event, by) {
  const groups = new Map();
  for (const one of by) {
    const which = event.seen.find((edge) => edge.activation === one)?.fate ?? -1,
      key = `${which}|${one.agent}`;
    if (!groups.has(key)) groups.set(key, { which, agent: one.agent, all: [] });
    groups.get(key).all.push(one);
  }
  return [...groups.values()];
}
