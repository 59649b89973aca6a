// The strip at the top: the run in a sentence, and the five answers, a card each. They were put into
// words by the program that made the rows; here are their places in the picture.

import { copy } from "./acts.js";
import { h, refill } from "./dom.js";
import { seconds } from "./words.js";

const LABELS = {
  ended: "How it ended",
  wrong: "What went wrong",
  who: "Who",
  monitor: "What the monitor did",
  next: "Do next",
};
const MOST_SAID = 60; // characters of what a turn was given
const GRADES = { good: "good", bad: "error", inexact: "warning" };

export class Cards {
  constructor(app, headline, list) {
    Object.assign(this, { app, headline, list, version: "" });
  }

  update() {
    const { model, clock } = this.app,
      answers = model.head.answers ?? {},
      stuck = this._stuck(clock.standstill),
      version = JSON.stringify([answers, stuck, model.findings.length]);
    if (version === this.version) return;
    this.version = version;
    this._say(stuck ? ["Stuck", stuck, "warning"] : this._verdict(answers));
    const isBad = ["bad", "inexact"].includes(answers.grade);
    const texts = {
      ended: answers.ended,
      wrong: answers.wrong?.length
        ? h("ol", {}, answers.wrong.map((step) => h("li", {}, this._step(step))))
        : answers.ended && (isBad ? "No pattern of failure was found." : "Nothing."),
      who: answers.who?.length ? h("ul", {}, answers.who.map((one) => h("li", {}, this._agent(one)))) : answers.ended && (isBad ? "Not known." : "Nobody."),
      monitor: answers.monitor,
      next: answers.next && [
        ...marked(answers.command ? `${answers.next}: ` : answers.next),
        answers.command && this._command(answers.command),
      ],
    };
    const kinds = {
      ended: GRADES[answers.grade],
      wrong: answers.wrong?.length && "error",
      who: answers.who?.some((one) => one.is_at_fault) && "error",
      monitor: answers.helped !== null && "heal",
      next: "next",
    };
    const cards = Object.keys(LABELS).filter((key) => texts[key]);
    refill(
      this.list,
      ...cards.map((key) =>
        h("li", { class: `card ${key} ${kinds[key] || ""}` }, h("h2", { text: LABELS[key] }), h("div", {}, texts[key])),
      ),
    );
  }

  /** The verdict and the rest of the sentence that begins with it. */
  _verdict({ verdict = "", headline = "", grade }) {
    return [verdict, headline.slice(verdict.length), GRADES[grade] ?? ""];
  }

  _say([verdict, rest, kind]) {
    this.headline.hidden = !verdict && !rest;
    this.headline.replaceChildren(h("strong", { class: kind, text: verdict }), ...marked(rest));
  }

  /** Since when no agent gets on with the work of a run that goes on, and what comes of that. */
  _stuck(standstill) {
    if (!standstill) return null;
    const [since, left] = [standstill.since_us, standstill.due_us - this.app.model.now.us].map(seconds);
    return ` since ${since}: work is waiting, and no agent is at it. Deadlock (DL) in ${left}.`;
  }

  /** A step, as a button that chooses its finding or its turn. */
  _step({ t, us, says }) {
    const { app } = this,
      { model } = app,
      open = () => {
        const node = model.finding(String(t)) ?? model.activations.find((one) => one.end?.t === t);
        if (node) app.select(node);
        else app.setAt(t);
      };
    return [
      h("button", { type: "button", class: "link", text: seconds(us), onclick: open }),
      " ",
      ...marked(says),
    ];
  }

  /** An agent with its part, and what its first failed turn was given. */
  _agent({ agent, says, is_at_fault: isAtFault, activation }) {
    const { contents, model } = this.app,
      events = model.node(activation)?.inputs.map((edge) => edge.event) ?? [],
      given = events.map((event) => contents.excerpt(event, MOST_SAID)).find(Boolean);
    return [
      h("span", { class: isAtFault ? "culprit" : "" }, this.app.link(agent), ` ${says}`),
      given && h("p", { class: "said", text: `given: ${given}` }),
    ];
  }

  /** A command that is copied by a click. */
  _command(text) {
    const button = h("button", { type: "button", class: "command", title: "Copy the command", text });
    button.addEventListener("click", () => copy(this.app, text, button));
    return button;
  }
}

/** A text whose names and ids stand between two signs, as code. */
function marked(text) {
  return text.split("`").map((part, i) => (i % 2 ? h("code", { text: part }) : part));
}
