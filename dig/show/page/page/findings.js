// The list of findings: errors first, then in order of time. The chosen one says why it was
// raised, what proves it, and what healing did.

import { h, refill } from "./dom.js";
import { clockOf } from "./details.js";
import { story } from "./story.js";

const MOST_ROWS = 500;

export class Findings {
  constructor(app, element) {
    this.app = app;
    this.element = element;
    this.version = "";
  }

  /** The findings that are not filtered away, in the order of the list. */
  shown() {
    const { hidden } = this.app.view;
    const weight = (one) => (one.severity === "error" ? 0 : 1);
    return this.app.model.findings
      .filter((one) => !hidden.patterns.has(one.pattern))
      .sort((a, b) => weight(a) - weight(b) || a.us - b.us || a.i - b.i);
  }

  update() {
    const { model, view } = this.app;
    const chosen = view.selected?.kind === "finding" ? view.selected : null;
    const version = [
      model.findings.length,
      model.heals.length,
      chosen?.id,
      view.hops,
      [...view.hidden.patterns].join(),
      view.at === null ? "" : view.at,
    ].join("|");
    if (version === this.version) return;
    this.version = version;
    const shown = this.shown();
    const list = h(
      "ol",
      { "aria-label": "Findings, errors first" },
      shown.slice(0, MOST_ROWS).map((one) => this._row(one, one === chosen)),
      shown.length > MOST_ROWS
        ? h("li", {
            class: "empty",
            text: `and ${shown.length - MOST_ROWS} more: filter, or search`,
          })
        : null,
    );
    refill(this.element, shown.length ? list : this._nothing());
    if (chosen) this.element.querySelector(".chosen")?.scrollIntoView({ block: "nearest" });
  }

  _nothing() {
    const { model } = this.app;
    const text = model.findings.length
      ? "All findings are filtered away."
      : model.finish || model.head.state !== "in progress"
        ? "Nothing was found: no pattern of failure was raised in this run."
        : "Nothing was found so far.";
    return h("p", { class: "empty", text });
  }

  _row(one, isChosen) {
    const { app } = this;
    const isLater = app.view.at !== null && one.t > app.view.at;
    const stage = one.stage ? ` ${one.stage}` : "";
    return h(
      "li",
      { class: `finding${isChosen ? " chosen" : ""}` },
      h(
        "button",
        {
          type: "button",
          "aria-expanded": String(isChosen),
          "data-finding": one.id,
          onclick: () => app.select(isChosen ? null : one),
        },
        h("span", { class: `badge ${one.severity}`, text: one.pattern }),
        h("span", { class: "when", text: `${one.severity}${stage}${isLater ? ", later" : ""}` }),
        h("span", { class: "when", text: clockOf(one) }),
        isChosen ? null : h("span", { class: "says", text: one.says }),
      ),
      isChosen ? this._more(one) : null,
    );
  }

  _more(one) {
    const { app } = this;
    return h(
      "div",
      { class: "more" },
      h("p", { text: one.why }),
      one.paths.map((path) =>
        h(
          "p",
          { class: "lead" },
          "Path: ",
          path.nodes.slice(0, 24).flatMap((id, i) => [i ? " → " : null, app.link(id)]),
          path.nodes.length > 24 ? ` and ${path.nodes.length - 24} more` : null,
        ),
      ),
      this._healing(one),
      h(
        "div",
        { class: "steps" },
        h("button", { type: "button", text: "Show it", onclick: () => app.reveal(one) }),
        h("button", {
          type: "button",
          text: "Fewer hops",
          disabled: app.view.hops === 0,
          onclick: () => app.setHops(app.view.hops - 1),
        }),
        h("button", {
          type: "button",
          text: `More hops (${app.view.hops})`,
          onclick: () => app.setHops(app.view.hops + 1),
        }),
      ),
    );
  }

  _healing(one) {
    const { app } = this;
    if (!one.heals.length) return h("p", { class: "lead", text: "Healing: nothing was done." });
    const heals = one.heals.map((heal) =>
      h(
        "li",
        {},
        h("p", {}, `Healing ${heal.says}. `, heal.event ? app.link(heal.event) : null),
        heal.note ? h("p", { class: "note", text: heal.note }) : null,
      ),
    );
    return [
      h("ul", { "aria-label": "What healing did" }, heals),
      h(
        "div",
        { class: "steps" },
        h("button", {
          type: "button",
          text: "Before healing",
          onclick: () => app.setAt(one.heals[0].t - 1),
        }),
        h("button", {
          type: "button",
          text: "After healing",
          onclick: () => app.setAt(this._after(one)),
        }),
        h("button", { type: "button", text: "All", onclick: () => app.setAt(null) }),
      ),
    ];
  }

  /** The record at which somebody is shown what healing made or changed. */
  _after(one) {
    const { model } = this.app;
    const last = one.heals[one.heals.length - 1];
    const event = model.node(last.event);
    return (
      (event ? story(event) : []).find(
        (step) => step.t > last.t && ["deliver", "start"].includes(step.what),
      )?.t ?? last.t
    );
  }
}
