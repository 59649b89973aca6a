// The view in the address: what is looked at can be sent to somebody and opened again.

import { LEAST_LANE } from "./view.js";

const HIDDEN = ["agents", "types", "worths", "patterns", "fates"];

/** Keeps the address of the page that of its view. The browser's Back goes to what was selected
 * before; selections within a moment are one step. */
export class Address {
  constructor(app) {
    this.app = app;
    this._isStep = false;
  }

  /** The next change is a step that one can go back from. */
  step() {
    if (!this._isStep) this.update();
    this._isStep = true;
  }

  updateSoon() {
    clearTimeout(this._soon);
    this._soon = setTimeout(() => this.update(), 250);
  }

  update() {
    const hash = toHash(this.app.view, this.app.tabs.shown),
      isStep = this._isStep;
    this._isStep = false;
    if (hash === location.hash.replace(/^#/, "")) return;
    if (isStep) history.pushState(null, "", `#${hash}`);
    else history.replaceState(null, "", `#${hash}`);
  }
}

/** The part of the address that tells a view. */
function toHash(view, tab) {
  const parts = new URLSearchParams();
  const set = (key, value, usual) => {
    if (value !== usual) parts.set(key, value);
  };
  set("axis", view.axis, "wall");
  set("graph", view.cleaned ? "cleaned" : "raw", "raw");
  set("fold", view.folded ? "1" : "0", "0");
  set("tab", tab, "findings");
  if (view.at !== null) parts.set("at", view.at);
  if (!view.fitted) {
    parts.set("from", Number(view.from.toPrecision(9)));
    parts.set("to", Number(view.place(view.width).toPrecision(9)));
    parts.set("lane", Math.round(view.laneHeight));
    parts.set("top", Math.round(view.top));
  }
  if (view.selected) {
    parts.set("is", view.selected.kind);
    parts.set(
      "id",
      view.selected.kind === "agent" && view.selected.i === 0 ? "" : view.selected.id,
    );
  }
  set("hops", String(view.hops), "0");
  set("lanes", view.hasAllLanes ? "all" : "", "");
  if (view.measured) parts.set("span", view.measured.map((at) => at.toPrecision(9)).join());
  for (const key of HIDDEN) for (const name of view.hidden[key]) parts.append(`no-${key}`, name);
  return parts.toString();
}

/** Makes a view what an address tells; returns what is to be selected, and the panel. */
export function fromHash(text, view, model) {
  const parts = new URLSearchParams(text.replace(/^#/, ""));
  view.axis = parts.get("axis") === "logical" ? "logical" : "wall";
  view.cleaned = parts.get("graph") === "cleaned";
  view.folded = parts.get("fold") === "1";
  view.at = number(parts, "at", 0, model.t);
  view.hops = number(parts, "hops", 0, 9) ?? 0;
  view.hasAllLanes = parts.get("lanes") === "all";
  const span = (parts.get("span") ?? "").split(",").map(Number);
  view.measured = span.length === 2 && span.every(Number.isFinite) ? span : null;
  for (const key of HIDDEN) {
    const names = parts.getAll(`no-${key}`);
    view.hidden[key] = new Set(key === "fates" ? names.map(Number) : names);
  }
  const window = { from: number(parts, "from"), to: number(parts, "to") };
  const isWindow = window.from !== null && window.to !== null && window.to > window.from;
  const selected = chosen(parts, model);
  return {
    selected,
    unknown: parts.has("is") && !selected ? `${parts.get("is")} ${parts.get("id")}` : null,
    tab: parts.get("tab") ?? "findings",
    window: isWindow ? window : null,
    lane: number(parts, "lane", LEAST_LANE, 110),
    top: number(parts, "top", 0),
  };
}

function number(parts, key, least = -Infinity, most = Infinity) {
  const value = parts.has(key) ? Number(parts.get(key)) : NaN;
  return Number.isFinite(value) ? Math.max(least, Math.min(most, value)) : null;
}

function chosen(parts, model) {
  const id = parts.get("id"),
    kind = parts.get("is");
  if (kind === "finding") return model.finding(id) ?? null;
  if (kind === "agent") return model.lane(id || null) ?? null;
  return (["event", "activation"].includes(kind) && model.node(id)) || null;
}
