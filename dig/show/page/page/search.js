// Search: ids, agents, types, and what was said.

import { h } from "./dom.js";
import { counted } from "./words.js";

const MOST_SHOWN = 60;

export class Search {
  constructor(app, input, list) {
    Object.assign(this, { app, input, list, found: [], total: 0, at: -1 });
    input.addEventListener("input", () => this.run());
    input.addEventListener("focus", () => input.value && this.run());
    input.addEventListener("blur", () => setTimeout(() => this.close(), 150));
    input.addEventListener("keydown", (e) => this._key(e));
  }

  focus() {
    this.input.focus();
    this.input.select();
  }

  run() {
    const text = this.input.value.trim().toLowerCase();
    const matches = text ? search(this.app.model, text) : [];
    this.total = matches.length;
    this.found = matches.slice(0, MOST_SHOWN);
    this.at = this.found.length ? 0 : -1;
    this._show(text);
  }

  close() {
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
  }

  _show(text) {
    const rows = this.found.map(({ one, why }, i) =>
      h(
        "li",
        {
          role: "option",
          id: `result-${i}`,
          "aria-selected": String(i === this.at),
          onpointerdown: (e) => {
            e.preventDefault();
            this._take(i);
          },
        },
        `${one.kind === "agent" ? "agent" : one.kind} ${one.kind === "finding" ? one.pattern : one.id}`,
        h("small", { text: why }),
      ),
    );
    const note =
      this.total > rows.length
        ? `and ${counted(this.total - rows.length, "more match").replace("matchs", "matches")}`
        : rows.length
          ? null
          : "Nothing matches.";
    this.list.replaceChildren(...rows, ...(note ? [h("li.note", { text: note })] : []));
    this.list.hidden = !text;
    this.input.setAttribute("aria-expanded", String(Boolean(text)));
    this._mark();
  }

  _mark() {
    for (const [i, row] of [...this.list.children].entries()) {
      if (row.getAttribute("role") === "option")
        row.setAttribute("aria-selected", String(i === this.at));
    }
    this.input.setAttribute("aria-activedescendant", this.at >= 0 ? `result-${this.at}` : "");
    this.list.children[this.at]?.scrollIntoView({ block: "nearest" });
  }

  _key(e) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (step && this.found.length) {
      e.preventDefault();
      this.at = (this.at + step + this.found.length) % this.found.length;
      this._mark();
    } else if (e.key === "Enter" && this.at >= 0) this._take(this.at);
    else if (e.key === "Escape") {
      e.stopPropagation();
      this.close();
      this.app.canvas.focus();
    }
  }

  _take(i) {
    const { one } = this.found[i];
    this.close();
    this.app.select(one);
    this.app.reveal(one);
    this.app.canvas.focus();
  }
}

/** All that matches a text in small letters: what is called so first, then what says so. */
function search(model, text) {
  const named = [],
    said = [];
  const look = (one, name, ...texts) => {
    if (name.toLowerCase().includes(text)) named.push({ one, why: texts[0] ?? "" });
    else {
      const found = texts.find((part) => part?.toLowerCase().includes(text));
      if (found !== undefined) said.push({ one, why: excerpt(found, text) });
    }
  };
  for (const lane of model.lanes.slice(1)) look(lane, lane.id, "");
  for (const one of model.findings) look(one, one.pattern, one.says, one.why);
  for (const one of model.activations) look(one, one.id, `of ${one.agent}`, one.error ?? undefined);
  for (const one of model.events) {
    look(one, one.id, one.type, one.payload, ...one.notes.map((heal) => heal.note));
  }
  return [...named.sort((a, b) => a.one.id.length - b.one.id.length), ...said];
}

function excerpt(text, part) {
  const at = text.toLowerCase().indexOf(part);
  return `${at > 30 ? "…" : ""}${text.slice(Math.max(0, at - 30), at + 90)}`;
}
