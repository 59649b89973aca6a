// The strip at the top: the run in a sentence, and the five answers, a card each. They were put into
// words by the program that made the rows; here are their places in the picture.

import { copy } from "./acts.js";
import { buttonOf, h, para, refill } from "./dom.js";
import { seconds } from "./words.js";

const LABELS = {
  ended: "How it ended",
  wrong: "What went wrong",
  who: "Who",
  monitor: "What the monitor did",
  next: "Do next",
};
const MOST_SAID = 60; // characters of what a turn was given
const MOST_AGENTS = 12;
const WORDS = /\p{L}{2,} \p{L}{2,}/u; // what a reader can read, unlike a list of numbers
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
    const { verdict = "", headline = "", grade } = answers,
      isBad = ["bad", "inexact"].includes(grade);
    this._say(stuck ? ["Stuck", stuck, "warning"] : [verdict, headline.slice(verdict.length), GRADES[grade]]);
    const texts = {
      ended: marked(answers.ended),
      wrong: answers.wrong?.length
        ? h("ol", answers.wrong.map((step) => h("li", this._step(step))))
        : answers.ended && (isBad ? "No pattern of failure was found." : "Nothing."),
      who: answers.who?.length
        ? h("ul", answers.who.slice(0, MOST_AGENTS).map((one) => h("li", this._agent(one))),
            answers.who.length > MOST_AGENTS && h("li", { text: `and ${answers.who.length - MOST_AGENTS} more` }))
        : answers.ended && (isBad ? "Not known." : "Nobody."),
      monitor: marked(answers.monitor),
      next: answers.next && [
        ...marked(answers.command ? `${answers.next}: ` : answers.next),
        answers.command && this._command(answers.command),
      ],
    };
    const alarm = grade === "good" ? "heal" : "error", // what was mended is no alarm
      isFault = ({ is_at_fault: isAtFault }) => isAtFault;
    const kinds = {
      ended: GRADES[grade],
      wrong: answers.wrong?.length && alarm,
      who: answers.who?.some(isFault) && alarm,
      monitor: answers.helped !== null && "heal",
      next: "next",
    };
    const cards = answers.ended ? Object.keys(LABELS) : [];
    refill(
      this.list,
      ...cards.map((key) =>
        h("li", { class: `card ${key} ${kinds[key] || ""}` }, h("h2", { text: LABELS[key] }), h("div", texts[key])),
      ),
    );
    // As wide as their texts are long, so that the picture keeps its place.
    const columns = [...this.list.children].map((card) => `minmax(${card.querySelector(".command") ? 200 : 172}px, ${card.textContent.length}fr)`);
    this.list.style.setProperty("--columns", columns.join(" "));
  }

  _say([verdict, rest, kind]) {
    this.headline.hidden = !verdict && !rest;
    this.headline.replaceChildren(h("strong", { class: kind ?? "", text: verdict }), ...marked(rest));
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
      buttonOf(seconds(us), open, { class: "link" }),
      " ",
      ...marked(says),
    ];
  }

  /** An agent with its part, and what a failed turn was given: behind a question it would read as the answer. */
  _agent({ agent, says, is_at_fault: isAtFault, activation }) {
    const { contents, model } = this.app,
      events = model.node(activation)?.inputs.map((edge) => edge.event) ?? [],
      isAlarm = isAtFault && model.head.answers.grade !== "good",
      given = events.filter((event) => event.source !== "system").map((event) => contents.excerpt(event, MOST_SAID)).find((text) => WORDS.test(text)),
      isTold = model.head.answers.wrong.some((step) => given && step.says.includes(given.slice(0, 40)));
    return [
      h("span", { class: isAlarm ? "culprit" : "" }, this.app.link(agent), " ", ...marked(says)),
      given && isAtFault && !isTold && para("said", `given: ${given}`),
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
  return (text ?? "").split("`").map((part, i) => (i % 2 ? h("code", { text: part }) : part));
}
