// The list of findings: errors first, then in order of time. Repeats are one row that opens. The
// chosen finding says why it was raised, what proves it, and what healing did.

import { commands, falseAlarm } from "./acts.js";
import { buttonOf, h, Panel, para, refill } from "./dom.js";
import { clockOf } from "./pieces.js";
import { way } from "./way.js";
import { number, rank, worth } from "./words.js";

const MOST_ROWS = 500;

export class Findings extends Panel {
  open = new Set(); // keys of repeats

  /** The findings that are not filtered away, in the order of the list. */
  shown() {
    return [...this._groups().values()].flat();
  }

  /** The finding that a report opens on: the worst, unless that is only a notice. */
  worst() {
    const [first] = this.shown();
    if (!first || first.silenced !== null || first.severity === "notice") return null;
    // A failed request without a failed turn points at no place: all of it is the story.
    const isPlace = first.pattern !== "FAIL" || first.ids.length > 1;
    return isPlace ? first : null;
  }

  /** The findings in that order with repeats together, by a key that all repeats have. */
  _groups() {
    const groups = new Map();
    this.app.model.findings
      .filter((one) => this.app.view.listsFinding(one))
      .sort((a, b) => rank(a) - rank(b) || a.us - b.us || a.i - b.i)
      .forEach((one) => {
        const key = JSON.stringify([one.severity, one.silenced, one.like]);
        if (!groups.has(key)) groups.set(key, []);
        groups.get(key).push(one);
      });
    return groups;
  }

  update() {
    const { model, view } = this.app;
    const chosen = view.selected?.kind === "finding" ? view.selected : null;
    const version = [
      model.findings.length,
      model.heals.length,
      chosen?.id,
      view.hops,
      view.away,
      view.hasAllLanes,
      [...view.hidden.patterns, "", ...view.hidden.worths].join(),
      [...this.open].join(),
      view.at === null ? "" : view.at,
    ].join("|");
    if (!this.isOther(version)) return;
    const groups = [...this._groups()];
    const list = h("ol", { "aria-label": "Findings, errors first" },
      cut(groups, ([key, all]) =>
        all.length > 1 ? this._repeats(key, all, chosen) : this._row(all[0], all[0] === chosen),
      ),
    );
    refill(this.element, groups.length ? list : this._nothing());
    // On a phone the list stands below the picture: a page that opens stays at its top.
    if (chosen && chosen !== this.app.story) this.element.querySelector(".chosen")?.scrollIntoView({ block: "nearest" });
  }

  /** That no pattern was found, and how the run failed all the same. */
  _unfound() {
    const { headline = "", grade } = this.app.model.head.answers ?? {};
    const says = "Nothing was found: no pattern of failure was raised in this run.";
    return grade === "bad" || grade === "inexact" ? `No pattern of failure was found, yet: ${headline.replaceAll("`", "")}` : says;
  }

  _nothing() {
    const { model } = this.app;
    const text = model.findings.length
      ? "All findings are filtered away."
      : model.finish || model.head.state !== "in progress"
        ? this._unfound()
        : "Nothing was found so far.";
    return para("empty", text);
  }

  /** A row for findings that are alike, with a row for each if it is open. */
  _repeats(key, all, chosen) {
    const [first] = all,
      last = all[all.length - 1];
    const isOpen = this.open.has(key) || all.includes(chosen);
    const toggle = () => {
      if (isOpen && all.includes(chosen)) this.app.select(null);
      if (isOpen) this.open.delete(key);
      else this.open.add(key);
      this.app.ask();
    };
    return h("li", { class: `finding ${worth(first)}` },
      head({
        first,
        key: `repeats ${key}`,
        isOpen,
        often: `${number(all.length)} times`,
        clock: `${clockOf(first)} – ${clockOf(last)}`,
        says: first.says,
        onclick: toggle,
      }),
      isOpen
        ? h("ol.repeats", { "aria-label": `${first.pattern}, each time` },
            cut(all, (one) => this._row(one, one === chosen)),
          )
        : null,
    );
  }

  _row(one, isChosen) {
    const { app } = this;
    return h("li", { class: `finding ${worth(one)}${isChosen ? " chosen" : ""}` },
      head({
        first: one,
        key: one.id,
        isOpen: isChosen,
        later: app.view.at !== null && one.t > app.view.at ? ", later" : "",
        clock: clockOf(one),
        says: isChosen ? "" : one.says,
        onclick: () => app.select(isChosen ? null : one),
      }),
      isChosen ? this._more(one) : null,
    );
  }

  _more(one) {
    const { app } = this;
    return h("div.more",
      h("p", { text: one.why }),
      one.silenced === null ? null : para("lead", `Silenced: ${one.silenced}`),
      way(app, one.paths),
      this._healing(one),
      h("div.steps",
        buttonOf("Show it", () => app.reveal(one)),
        app.view.away
          ? buttonOf(app.view.hasAllLanes ? "Fold other lanes" : "All lanes", () => app.toggleLanes())
          : null,
        buttonOf("Fewer hops", () => app.setHops(app.view.hops - 1), { disabled: app.view.hops === 0 }),
        buttonOf(`More hops (${app.view.hops})`, () => app.setHops(app.view.hops + 1)),
      ),
      commands(app, one),
      falseAlarm(app, one),
    );
  }

  _healing(one) {
    const { app } = this;
    if (app.model.head.unit) return null; // no run: there was nothing to heal
    if (!one.heals.length) return para("lead", "Healing: nothing was done.");
    const heals = one.heals.map((heal) =>
      h("li",
        h("p", `Healing ${heal.says}. `, heal.event ? app.link(heal.event) : null),
        heal.note ? para("note", heal.note) : null,
      ),
    );
    return [
      h("ul", { "aria-label": "What healing did" }, heals),
      h("div.steps",
        buttonOf("Before healing", () => app.setAt(one.heals[0].t - 1)),
        buttonOf("After healing", () => app.setAt(one.heals.at(-1).t)),
      ),
    ];
  }
}

/** The line of a finding, or of several that are alike. */
function head({ first, key, isOpen, often = "", later = "", clock, says, onclick }) {
  const stage = first.stage ? ` ${first.stage}` : "";
  return h("button", { type: "button", "aria-expanded": String(isOpen), "data-finding": key, onclick },
    h("span", { class: `badge ${worth(first)}`, text: first.pattern }),
    h("span.when",
      often ? h("span.times", { text: `${often} ` }) : null,
      `${named(first)}${worth(first)}${stage}${later}`,
    ),
    h("span.when", { text: clock }),
    says ? h("span.says", { text: `${says}${reason(first)}` }) : null,
  );
}

/** The name of a finding's pattern in words, if it has one besides its letters. */
function named(one) {
  const [title] = one.title.split(" (");
  return title === one.pattern ? "" : `${title}, `;
}

/** Why a policy silences a finding, if one does. */
function reason(one) {
  return one.silenced === null ? "" : ` (silenced: ${one.silenced})`;
}

/** Rows of a list of which very many are not shown. */
function cut(all, row) {
  const rows = all.slice(0, MOST_ROWS).map(row);
  if (all.length > MOST_ROWS)
    rows.push(
      h("li.empty", { text: `and ${all.length - MOST_ROWS} more: filter, or search` }),
    );
  return rows;
}
