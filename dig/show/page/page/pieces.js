// The pieces that details and findings are made of.

import { h, para } from "./dom.js";
import { number, PAST, seconds } from "./words.js";

/** The longest list that is shown whole. */
export const MOST_ROWS = 200;

const MOST_SAID = 120; // characters

/** A part with its title. */
export function section(title, ...children) {
  return h("section", h("h3", { text: title }), ...children);
}

/** Names and what they are; what is not known is left out. */
export function factsOf(facts) {
  const known = Object.entries(facts).filter(([, value]) => value !== null && value !== undefined);
  return h("dl.facts",
    known.flatMap(([key, value]) => [h("dt", { text: key }), h("dd", value)]),
  );
}

/** A list, cut where it is very long. */
export function rows(all, make) {
  if (!all.length) return para("empty", "None.");
  return h("ul.rows",
    all.slice(0, MOST_ROWS).map((one) => h("li", make(one))),
    more(all),
  );
}

/** A table: the names of its columns, and the cells of each row, which are texts or elements. */
export function table(kind, heads, all) {
  const head = heads.map((text) => h("th", { scope: "col", text }));
  const body = all.map((cells) => h("tr", cells.map((cell) => h("td", cell))));
  return h(`table.${kind}`, h("thead", h("tr", head)), h("tbody", body));
}

/** The number of items that a list leaves out. */
export function more(all) {
  return all.length > MOST_ROWS
    ? h("li", { text: `and ${number(all.length - MOST_ROWS)} more` })
    : null;
}

/** The beginning of what an event says, if it says something. */
export function said(app, event) {
  const text = app.contents.excerpt(event, MOST_SAID);
  return text ? para("said", text) : null;
}

/** The fate of an event: a sign, and a word. */
export function fate(which, text) {
  return h("span", { class: `fate f${which}`, text, title: PAST[which] });
}

/** Figures of a usage, whatever its source calls them. */
export function spent(usage) {
  const known = Object.entries(usage ?? {}).filter(
    ([, value]) => typeof value === "number" || typeof value === "string",
  );
  return Object.fromEntries(
    known
      .slice(0, 8)
      .map(([key, value]) => [
        key.replaceAll("_", " "),
        typeof value === "number" ? number(value) : value,
      ]),
  );
}

/** The moment of something. */
export function clockOf(at) {
  return seconds(at.us);
}

/** All that happened to an event, in order; what agents did with it is on its edges. */
export function story(event) {
  const seen = event.seen.flatMap(({ activation, fate, to }) => {
    const { t, us, end } = activation;
    return [
      { t, us, what: "start", activation },
      ...(end ? [{ ...end, what: "end", activation, fate, to }] : []),
    ];
  });
  return [...event.told, ...seen].sort((a, b) => a.t - b.t);
}
