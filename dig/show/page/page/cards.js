// The strip at the top: what failed, what was done about it and what came of it, a card each. What
// the cards say was put into words by the program that made the rows.

import { h, put, refill } from "./dom.js";
import { counted, seconds, worth } from "./words.js";

const MOST_FAILURES = 2; // patterns; the list of findings has them all

export class Cards {
  constructor(app, headline, list) {
    Object.assign(this, { app, headline, list, version: "" });
  }

  update() {
    const { model, live } = this.app,
      { head } = model;
    const failed = this._line("headline"),
      headline = failed ?? this._stuck() ?? this._line("end") ?? "";
    const kind = failed ? "headline bad" : "headline";
    put(this.headline, { textContent: headline, hidden: !headline, className: kind });
    const version = [model.version, live, head.state, JSON.stringify(head.verdict)].join("|");
    if (version === this.version) return;
    this.version = version;
    refill(this.list, ...this._cards().map((card) => this._card(card)));
  }

  /** A line of the verdict: what failed, or how the run ended. */
  _line(wanted) {
    return this.app.model.head.verdict?.find(([label]) => label === wanted)?.[1];
  }

  /** Since when no agent gets on with the work of a run that goes on, and what comes of that. */
  _stuck() {
    const { model, clock } = this.app,
      { standstill } = clock;
    if (!standstill) return null;
    const [since, left] = [standstill.since_us, standstill.due_us - model.now.us].map(seconds);
    return `Stuck since ${since}: work is waiting, and no agent is at it. Deadlock (DL) in ${left}.`;
  }

  _cards() {
    return [this._cause(), ...this._failures(), this._answer()].filter(Boolean);
  }

  /** The cause that a diagnosis names, if there is one. */
  _cause() {
    const { app } = this,
      { model } = app,
      { cause } = model.head;
    if (!cause) return null;
    const { t, says } = cause,
      node = [...model.activations, ...model.events].find((one) => one.t === t);
    return {
      kind: "cause",
      label: "Cause",
      at: this._at(t),
      says,
      open: t === null ? null : () => (node ? app.select(node) : app.setAt(t)),
    };
  }

  _at(t) {
    return t === null ? null : { t, us: this.app.model.times[t] ?? 0 };
  }

  /** The first findings of the worst kind, one of each pattern, with the healing of each. */
  _failures() {
    const { model } = this.app,
      failed = this._line("headline");
    const all = ["error", "warning"]
      .map((value) => model.findings.filter((one) => worth(one) === value))
      .map((some) => some.filter(({ pattern }) => !failed || pattern !== "FAIL")) // said above
      .find((found) => found.length);
    if (!all && failed) return [];
    if (!all)
      return model.finish ? [{ kind: "none", label: "No failure", says: "None was found." }] : [];
    const firsts = [...new Map(all.toReversed().map((one) => [one.pattern, one])).values()];
    const shown = firsts.sort((a, b) => a.t - b.t).slice(0, MOST_FAILURES);
    const cards = shown.flatMap((one) => this._failure(one, all));
    const more = all.filter((one) => shown.every(({ pattern }) => pattern !== one.pattern)).length;
    if (more)
      cards.push({
        kind: "more",
        label: `${counted(more, "more failure")}`,
        says: "All are in the list of findings.",
        open: () => this.app.tabs.show("findings"),
      });
    return cards;
  }

  _failure(one, all) {
    const alike = all.filter(({ pattern }) => pattern === one.pattern),
      healed = alike.flatMap(({ heals }) => heals.filter(({ action }) => action !== "refused"));
    const cards = [
      {
        kind: worth(one),
        label: begun(one.title),
        at: one,
        says: begun(one.plain),
        more: alike.length - 1,
        open: () => this.app.select(one),
      },
    ];
    if (healed.length) {
      const [first] = healed,
        isHeld = one.pattern === "ET" && first.action === "reroute";
      cards.push({
        kind: "heal",
        label: isHeld ? "Held" : "Healed",
        at: first,
        says: `The monitor ${first.plain}.`,
        more: healed.length - 1,
        open: () => this.app.select(this.app.model.node(first.event) ?? one),
      });
    }
    return cards;
  }

  _answer() {
    const { model } = this.app,
      { head, finish } = model;
    const accepted = model.events.findLast((event) => event.accepted !== undefined);
    if (!finish && (head.state === "in progress" || (head.unit && !accepted))) return null;
    if (model.run.session || !accepted)
      return {
        kind: model.run.session ? "none" : "error",
        label: model.run.session ? "Requests" : "No answer",
        at: finish,
        says: this._line("end") ?? "The run has no end.",
        open: () => this.app.tabs.show("overview"),
      };
    return {
      kind: head.answer?.grade ?? "unknown",
      label: "Answer",
      at: this._at(accepted.accepted),
      says: head.answer?.says ?? "",
      open: () => this.app.select(accepted),
    };
  }

  _card({ kind, label, at, says, more, open }) {
    const often = more ? ` and ${more} more` : "";
    return h(
      "li",
      {},
      h(
        "button",
        { type: "button", class: `card ${kind}`, title: says, disabled: !open, onclick: open },
        h("span", { class: "label", text: `${label}${at ? ` · ${seconds(at.us)}` : ""}${often}` }),
        h("span", { class: "says", text: says }),
      ),
    );
  }
}

/** A text as the beginning of a sentence. */
function begun(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
