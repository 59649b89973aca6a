// A diagnosis: its candidates, the way by which the failure went on, and what was tried.

import { buttonOf, h } from "./dom.js";
import { rows, section, table } from "./pieces.js";

/** The diagnosis that came with a report, as a section; nothing if there is none. */
export function whyItFailed(app) {
  const { model } = app,
    { cause } = model.head;
  if (!cause?.candidates.length) return null;
  const link = (node, text) =>
    node
      ? buttonOf(text, () => app.select(node), { class: "link" })
      : text;
  const chain = cause.chain.map((step) => model.activations[step]).filter(Boolean);
  return section(
    "Why it failed",
    h("p", { text: cause.says }),
    rows(cause.candidates.map((one, i) => [one, `${i + 1}  ${one.says}`]), ([{ node }, text]) =>
      link(model.node(node), text),
    ),
    chain.length > 1
      ? h("p", "The failure went on by ", ...between(chain.map((one) => link(one, one.id))))
      : null,
    cause.tried.length ? h("h4", { text: "What was tried" }) : null,
    cause.tried.length ? tried(cause.tried) : null,
  );
}

function between(links) {
  return links.flatMap((one, i) => (i ? [" \u2192 ", one] : [one]));
}

function tried(changes) {
  const rows = changes.map((one) => [
    dots(one.good, one.of),
    dots(one.unchanged_good, one.unchanged_of),
    `${one.verdict}: ${one.says}`,
  ]);
  return table("tried", ["with it", "without", "change"], rows);
}

/** A dot a run, filled if it was good; read aloud as numbers. */
function dots(good, of) {
  return of ? `${"\u25cf".repeat(good)}${"\u25cb".repeat(of - good)} ${good} of ${of}` : "none";
}
