// The words around the picture: the title, the hint above it, the tip at the pointer.

import { Axis } from "./axis.js";
import { $, h, Panel, put } from "./dom.js";
import { isDark } from "./theme.js";
import { ACTIONS, counted, describe, list, number, origin, seconds, weighed } from "./words.js";

const MOST_FAILED = 5;

export class Heading extends Panel {
  update() {
    const { app } = this,
      { model } = app;
    put($("title"), { textContent: model.head.answers?.task || this._name() });
    const chips = this._chips();
    const text = chips.map(([what]) => what).join("|");
    if (text !== this.shown) {
      this.shown = text;
      $("chips").replaceChildren(
        ...chips.map(([what, kind]) => h("li", { class: kind, text: what })),
      );
    }
    this._failed();
    put($("theme"), { textContent: isDark() ? "Light" : "Dark" });
    put($("count"), { textContent: model.findings.length ? number(model.findings.length) : "" });
  }

  /** A line for each part of the monitor that failed: what it would have found is not here. */
  _failed() {
    const parts = [...this.app.model.failed.values()];
    const lines = parts.slice(0, MOST_FAILED).map(({ times, says }) => {
      const often = times > 1 ? ` (${number(times)} times; this is the latest)` : "";
      return says + often;
    });
    const more = parts.length - MOST_FAILED;
    if (more > 0) lines.push(`and ${counted(more, "further part")} of the monitor failed`);
    const text = lines.join("|");
    if (text === this.shownFailed) return;
    this.shownFailed = text;
    $("failed").hidden = !lines.length;
    $("failed").replaceChildren(...lines.map((line) => h("li", { text: line })));
  }

  _name() {
    const { head, run } = this.app.model;
    return head.team ?? run.run ?? head.file ?? "Run";
  }

  _chips() {
    const { model, live } = this.app,
      { head, finish } = model;
    const chips = head.answers?.task ? [[this._name(), ""]] : [];
    if (live === "live" && !finish) chips.push(["live", "good"]);
    if (live === "waiting") chips.push(["connection lost, trying again", "bad"]);
    if (live === "lost") chips.push(["the server has gone", "bad"]);
    if (head.agents_are === "simulated") chips.push(["simulated agents", "strong"]);
    if (!head.answers?.task) chips.push([counted(model.lanes.length - 1, head.lanes ?? "agent"), ""]);
    const isOpen = head.state === "in progress" && !finish;
    chips.push([seconds(model.now.us) + (isOpen ? " so far" : ""), ""]);
    const counts = weighed(model.findings),
      isMended = head.unmended === 0 && !head.requests?.["ended by an error"];
    if (counts.error) chips.push([`${counted(counts.error, "error")}${isMended ? ", mended" : ""}`, isMended ? "" : "bad"]);
    for (const one of ["warning", "notice"]) if (counts[one]) chips.push([counted(counts[one], one), ""]);
    if (counts.silenced) chips.push([`${number(counts.silenced)} silenced`, ""]);
    if (head.began) chips.push([head.began.slice(0, 16).replace("T", " "), ""]);
    return chips;
  }
}

/** Presses buttons, and says what the picture does not show. */
export class Hint extends Panel {
  update() {
    const { app } = this,
      { view, layout } = app,
      { drawn } = app.painter;
    const press = {
      raw: !view.cleaned,
      cleaned: view.cleaned,
      wall: view.axis === "wall",
      logical: view.axis === "logical",
      fold: view.folded,
    };
    for (const [id, isPressed] of Object.entries(press))
      put($(id), { ariaPressed: String(isPressed) });
    put($("fold"), { disabled: !view.folded && !this._isFoldable() });
    const parts = [];
    if (app.unknown) parts.push(`the link names ${app.unknown}, which is not in this run`);
    if (view.at !== null) parts.push(app.timebar.text);
    if (drawn.isMore)
      parts.push(
        drawn.edges
          ? view.focus
            ? "edges in focus only: zoom in to see all"
            : "edges that end out of sight are left out"
          : "too many edges in sight: zoom in, or choose something",
      );
    if (view.folded) parts.push(counted(layout.axis.folds.length, "fold"));
    if (view.focus) parts.push(`${view.focus.size} in focus`);
    const text = parts.join(" · ");
    put($("hint"), { textContent: text, title: text });
  }

  /** A fold would come of it; of a run that grows that is not known. */
  _isFoldable() {
    const { model, view, live } = this.app,
      key = `${model.version}|${view.axis}`;
    if (live !== null) return true;
    if (key !== this.key) {
      this.key = key;
      this.folds = new Axis(model, view.axis, true).folds.length;
    }
    return this.folds > 0;
  }
}

export class Tip extends Panel {
  show(one, x, y) {
    const { element, app } = this;
    element.hidden = !one;
    if (!one) return;
    element.replaceChildren(...tip(one, app).map((text, i) => h(i ? "p" : "strong", { text })));
    const { width, height } = app.view;
    element.style.left = `${Math.max(4, Math.min(x + 14, width - element.offsetWidth - 6))}px`;
    element.style.top = `${y + 18 + element.offsetHeight > height ? y - element.offsetHeight - 8 : y + 18}px`;
  }
}

const MOST_LISTED = 4; // inputs and outputs at the pointer
const MOST_SAID = 60; // characters of each

/** Events in a line each, with what they say. */
function lines(app, label, events) {
  const rows = events.slice(0, MOST_LISTED).map((event) => {
    const says = app.contents.excerpt(event, MOST_SAID);
    return `${label}: ${event.id} ${event.type}${says ? `: ${says}` : ""}`;
  });
  const more = events.length - rows.length;
  return more > 0 ? [...rows, `${label}: and ${more} more`] : rows;
}

function tip(one, app) {
  switch (one.kind) {
    case "fold":
      return [
        one.fold.text.startsWith("×")
          ? `Repeats ${one.fold.text}`
          : `Nothing happens for ${one.fold.text}`,
        "Click to unfold.",
      ];
    case "away":
      return ["Lanes without a part in this finding", "Click to show or to fold them."];
    case "finding":
      return [`${one.title} · ${seconds(one.us)}`, one.plain, one.says];
    case "agent":
      return [one.i ? one.id : "outside, healing", describe(one)];
    case "activation":
      return [
        `${one.id} of ${one.agent}`,
        `${ACTIONS[one.end ? one.action : "working"]} · ${seconds(one.us)}, took ${seconds((one.end ?? app.model.now).us - one.us)}`,
        ...lines(app, "in", one.inputs.map((edge) => edge.event)),
        ...lines(app, "out", one.outputs),
      ];
    default:
      return [
        `${one.id} · ${one.type}`,
        `${origin(one)} at ${seconds(one.us)}, for ${list(one.to, MOST_LISTED)}`,
        app.contents.excerpt(one, 3 * MOST_SAID),
      ].filter(Boolean);
  }
}
