// The inspector: all there is to say of an activation, an event or an agent.

import { buttonOf, h, Panel, para, refill } from "./dom.js";
import {
  clockOf, factsOf, fate, more, MOST_ROWS, rows, said, section, spent, story,
} from "./pieces.js";
import { ACTIONS, counted, list, number, origin, PAST, seconds, told, worth } from "./words.js";

export class Details extends Panel {
  update() {
    const { model, view } = this.app,
      one = view.selected;
    const version = [one?.kind, one?.id, one?.i, view.at, one ? model.version : 0].join("|");
    const [before, now] = [this.version, version].map((text) => text.split("|", 3).join());
    if (!this.isOther(version)) return;
    const make = { activation: "_activation", event: "_event", agent: "_agent" }[one?.kind];
    const scrolled = before === now ? this.element.scrollTop : 0;
    refill(this.element, ...(make ? this[make](one) : [this._nothing()]));
    this.element.scrollTop = scrolled;
  }

  _nothing() {
    return para("empty", "Choose an activation, an event or an agent in the picture: click it, or walk with j and k.");
  }

  _activation(one) {
    const { app } = this;
    const lane = app.model.lanes[one.lane];
    const facts = {
      agent: app.link(lane),
      began: `${clockOf(one)}, record ${one.t}`,
      ended: one.end ? `${clockOf(one.end)}, record ${one.end.t}` : "not ended",
      took: seconds((one.end ?? app.model).us - one.us),
      ...spent(one.usage),
    };
    return [
      h("h2", { text: `Activation ${one.id}` }),
      para("lead", `${one.agent} ${one.end ? ACTIONS[one.action] : "is at work"}`),
      factsOf(facts),
      one.error === null ? null : section("Error", h("pre", { text: one.error })),
      section(
        `Inputs (${one.inputs.length})`,
        rows(one.inputs, (edge) => [
          h("div.what",
            app.link(edge.event),
            ` ${edge.event.type} ${origin(edge.event)}, waited ${seconds(one.us - edge.landed.us)}`,
            said(app, edge.event),
          ),
          fate(edge.fate, one.end ? PAST[edge.fate].replace(" by", "") : "in front"),
        ]),
      ),
      section(
        `Outputs (${one.outputs.length})`,
        rows(one.outputs, (event) => [
          h("div.what",
            app.link(event),
            ` ${event.type}, for ${list(event.to)}`,
            said(app, event),
          ),
        ]),
      ),
      this._raised(one),
    ];
  }

  _event(one) {
    const { app } = this;
    const maker = one.by
      ? [app.link(one.by), ` of ${one.by.agent}`]
      : [one.source === "system" ? "healing" : "outside"];
    const facts = {
      type: one.final ? "final: an answer" : one.type,
      from: maker,
      to: list(one.to),
      emitted: `${clockOf(one)}, record ${one.t}`,
      policy: one.policy,
      waited: this._waits(one),
    };
    const steps = story(one);
    return [
      h("h2", { text: `Event ${one.id}` }),
      para("lead", state(one)),
      factsOf(facts),
      this._payload(one),
      one.notes.length
        ? section(
            "Notes beside it",
            one.notes.map((heal) => para("note", heal.note)),
          )
        : null,
      section(
        "Its story",
        h("ol.rows", { "aria-label": `Story of ${one.id}` },
          steps.slice(0, MOST_ROWS).map((step) => this._step(step)),
          more(steps),
        ),
      ),
      this._raised(one),
    ];
  }

  _waits(one) {
    return (
      one.seen
        .filter((edge) => edge.activation.us > edge.landed.us)
        .slice(0, 6)
        .map(
          (edge) => `${seconds(edge.activation.us - edge.landed.us)} with ${edge.activation.agent}`,
        )
        .join(", ") || null
    );
  }

  _step(step) {
    const { app } = this;
    const isLater = app.view.at !== null && step.t > app.view.at;
    const text = h("span.what", told(step));
    return h("li", { class: isLater ? "later" : "" },
      h("button", {
        class: "link when",
        type: "button",
        text: clockOf(step),
        title: `record ${step.t}: show the graph as it stood then`,
        onclick: () => app.setAt(step.t),
      }),
      text,
      step.activation ? app.link(step.activation, "go") : null,
      step.what === "end" ? fate(step.fate, "") : null,
    );
  }

  _payload(one) {
    const { cut } = this.app.model.head;
    if (one.payload === undefined)
      return cut === 0
        ? section(
            "Payload",
            para("cut", "Payloads were left out of this report."),
          )
        : null;
    const isCut = one.payload.length < one.chars;
    return section(
      "Payload",
      h("pre", { tabindex: "0", text: one.payload }),
      isCut
        ? para("cut", `Cut at ${number(one.payload.length)} of ${number(one.chars)} characters.`)
        : null,
    );
  }

  _agent(lane) {
    const { app } = this,
      { model } = app;
    if (lane.i === 0) {
      return [
        h("h2", { text: "Outside and healing" }),
        para("lead", "What came from outside, and what healing made."),
        section(
          `Events (${lane.events.length})`,
          rows(lane.events, (event) => [
            app.link(event),
            ` ${event.source === "system" ? "healing" : "outside"}, ${event.type}`,
          ]),
        ),
      ];
    }
    const total = Math.max(1, model.us);
    const waited = lane.activations.flatMap((one) =>
      one.inputs.map((edge) => one.us - edge.landed.us),
    );
    const facts = {
      turns: number(lane.activations.length),
      waited: counted(lane.waits, "turn"),
      busy: `${Math.round((100 * lane.busyUs) / total)} % of the time`,
      "in its buffer": number(lane.buffer.size),
      most: `${lane.load.reduce((most, step) => Math.max(most, step.n), 0)} at once`,
      "an event lay": waited.length
        ? `${seconds(waited.reduce((a, b) => a + b, 0) / waited.length)} before it was looked at, on average`
        : null,
      consumed: number(lane.fates[0]),
      delayed: number(lane.fates[1]),
      rerouted: number(lane.fates[2]),
      discarded: number(lane.fates[3]),
      generated: number(lane.events.length),
    };
    return [
      h("h2", { text: lane.id }),
      para("lead", lane.present ? "Takes part in the run." : "Left the run."),
      buttonOf("Only this agent", () => app.only(lane)),
      factsOf(facts),
      lane.moves.length
        ? section(
            "Came and went",
            rows(lane.moves, (move) => [`${move.what} at ${clockOf(move)}`]),
          )
        : null,
      section(
        "What it did",
        rows(lane.activations, (one) => [
          h("span.when", { text: clockOf(one) }),
          h("span.what",
            app.link(one),
            ` ${ACTIONS[one.end ? one.action : "working"]}`,
            one.outputs.length
              ? [": ", one.outputs.slice(0, 4).flatMap((event) => [app.link(event), " "])]
              : null,
          ),
        ]),
      ),
    ];
  }

  _raised(node) {
    if (!node.findings.length) return null;
    return section(
      "Findings",
      rows(node.findings, (one) => [
        h("span", { class: `badge ${worth(one)}`, text: one.pattern }),
        buttonOf(one.says, () => this.app.select(one), { class: "link what" }),
      ]),
    );
  }
}

function state(event) {
  if (event.accepted) return "Accepted as the answer.";
  if (event.final && event.landed.size) return "Sent back to who submitted it.";
  if (event.seen.some((edge) => edge.fate === 0)) return "Consumed.";
  return event.seen.length ? "Seen, and used by nobody." : "Seen by nobody.";
}
