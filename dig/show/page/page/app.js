// The page at work: what one does to the view, and what is drawn anew after it.

import { $, h } from "./dom.js";
import { inFocus, nodesOf } from "./focus.js";
import { Layout } from "./layout.js";
import { Address, fromHash } from "./link.js";
import { Model } from "./model.js";
import { Pace } from "./pace.js";
import { colours, isDark, setTheme } from "./theme.js";
import { View } from "./view.js";
import { counted, describe } from "./words.js";

const AHEAD = 1.2; // how much room there is for a run that grows

export class App {
  constructor(canvas) {
    this.canvas = canvas;
    this.model = new Model();
    this.view = new View();
    this.layout = new Layout(this.model, this.view);
    this.isReady = false;
    this.twin = null; // the run beside it
    this.live = null; // null: a report; else "live", "waiting", "lost" or "ended"
    this._isAsked = false;
    this.pace = new Pace(this);
    this.address = new Address(this);
  }

  // --- what comes in ---

  setHead(head) {
    this.model.head = head;
    this.parts?.heading.update();
    this.ask();
  }

  /** Takes rows, in order; as much work as there is news. */
  add(rows) {
    const { model, layout, view } = this;
    const folds = model.repeats.found.length,
      lanes = model.lanes.length;
    if (!model.add(rows)) return;
    if (view.folded && model.repeats.found.length !== folds) layout.reset();
    else layout.update();
    if (model.lanes.length !== lanes) view.arrange(model);
    const { end } = layout.axis,
      isOut = end > view.place(view.width - 12);
    if (view.fitted && (isOut || model.lanes.length !== lanes)) this._fit();
    this.ask();
  }

  setLive(state) {
    this.live = state;
    this.parts?.heading.update();
    if (state === "ended" && this.view.fitted) this.fit();
  }

  /** The first rows are there: opens the view that the address tells of. */
  ready() {
    this.isReady = true;
    this.resize();
    this.open(location.hash);
  }

  open(hash) {
    const { view, model, layout } = this;
    const told = fromHash(hash, view, model);
    view.arrange(model);
    layout.reset();
    this._fit();
    if (told.window) {
      view.fitted = false;
      view.from = told.window.from;
      view.scale = view.plot / (told.window.to - told.window.from);
      if (told.lane) view.laneHeight = told.lane;
      view.top = told.top ?? 0;
    }
    this._choose(told.selected);
    this.tabs.show(told.tab);
    this.ask();
  }

  resize() {
    const { canvas, view } = this,
      ratio = devicePixelRatio || 1;
    const box = canvas.parentElement.getBoundingClientRect();
    view.width = Math.round(box.width);
    view.height = Math.round(box.height);
    const width = Math.round(view.width * ratio),
      height = Math.round(view.height * ratio);
    if (canvas.width === width && canvas.height === height) return;
    canvas.width = width;
    canvas.height = height;
    if (view.fitted) this._fit();
    if (this.isReady) this.paint(); // at once: a canvas of another size is empty
  }

  // --- moving ---

  pan(dx, dy) {
    this._moved((view, end) => view.pan(dx, dy, end));
  }

  zoom(factor, x) {
    this._moved((view, end) => view.zoom(factor, x, end));
  }

  /** Zooms around what is selected, if it is in sight; else around the middle. */
  zoomHere(factor) {
    const { view, layout } = this,
      one = view.selected;
    const place = { event: layout.eventAt, activation: layout.startAt }[one?.kind]?.[one.i];
    const x = place === undefined ? -1 : view.x(place);
    const isSeen = x >= view.gutter && x <= view.width;
    this.zoom(factor, isSeen ? x : view.gutter + view.plot / 2);
  }

  stretch(factor, y) {
    this._moved((view) => view.stretch(factor, y));
  }

  center(place) {
    this._moved((view, end) =>
      view.pan((view.place(view.gutter + view.plot / 2) - place) * view.scale, 0, end),
    );
  }

  fit() {
    this._moved(() => this._fit());
  }

  /** Shows everything; while a run grows with room ahead, so that not every record moves all. */
  _fit() {
    this.view.fit(this.layout.axis.end * (this.live === "live" ? AHEAD : 1));
  }

  _moved(move) {
    move(this.view, this.layout.axis.end);
    this.ask();
  }

  /** Brings something into sight. */
  reveal(one) {
    const { view, layout, model } = this;
    if (!one) return;
    const nodes = one.kind === "finding" ? nodesOf(model, one) : [one];
    const places = nodes
      .filter((node) => node.kind !== "agent")
      .flatMap((node) =>
        node.kind === "event"
          ? [layout.eventAt[node.i]]
          : [layout.startAt[node.i], layout.endOf(node.i)],
      );
    if (one.kind === "finding") places.push(layout.axis.place(one));
    const lane = one.kind === "agent" ? one.i : (nodes[0]?.lane ?? null);
    if (!places.length) places.push(view.from, view.from);
    const [from, to] = [Math.min(...places), Math.max(...places)];
    this._moved(() => {
      if (one.kind === "finding") view.approach(from, to, this._lanesOf(nodes));
      view.reveal(from, to, lane, layout.axis.end);
    });
  }

  /** The positions of the agents' lanes in which some nodes are. */
  _lanesOf(nodes) {
    return nodes
      .filter((node) => node.lane > 0)
      .map((node) => this.view.position[node.lane])
      .filter((position) => position >= 0);
  }

  // --- choosing ---

  /** Selects a node, agent or finding; null selects nothing. */
  select(one) {
    this._choose(one);
    if (one) {
      this.tabs.show(one.kind === "finding" ? "findings" : "details");
      if (one.kind !== "agent") this.reveal(one);
    }
    this.say(one ? describe(one) : "Nothing is selected.");
    this.ask();
  }

  _choose(one) {
    const nodes = nodesOf(this.model, one);
    this.view.selected = one ?? null;
    this.view.marked = one?.kind === "finding" ? new Set(nodes) : null;
    this._focus();
  }

  /** Focuses on what went from one agent to another. */
  selectPair(from, to) {
    const nodes = from.events.filter((event) => event.landed.has(to.i));
    const seen = nodes.flatMap((event) =>
      event.seen.filter((edge) => edge.activation.lane === to.i),
    );
    this._choose(null);
    const makers = nodes.map((event) => event.by).filter(Boolean);
    this.view.setFocus(new Set([...nodes, ...makers, ...seen.map((edge) => edge.activation)]));
    this.say(`${counted(nodes.length, "event")} from ${from.id} to ${to.id}.`);
    this.ask();
  }

  _focus() {
    const { model, view } = this;
    view.setFocus(inFocus(model, view.selected, view.hops, view.cleaned));
  }

  setHops(hops) {
    this.view.hops = Math.max(0, Math.min(9, hops));
    this._focus();
    this.ask();
  }

  hover(one, x = 0, y = 0) {
    const isOther = this.painter.hover !== one;
    this.painter.hover = one;
    this.canvas.classList.toggle("pointing", Boolean(one));
    this.parts.tip.show(one, x, y);
    if (isOther) this.ask();
  }

  // --- how it is shown ---

  setCleaned(isCleaned) {
    this.view.cleaned = isCleaned;
    this._focus();
    this.say(isCleaned ? "The cleaned graph: productive edges only." : "The raw graph.");
    this.ask();
  }

  setAxis(axis) {
    this._anew(() => {
      this.view.axis = axis;
    });
  }

  toggleFold() {
    this._anew(() => {
      this.view.folded = !this.view.folded;
    });
    this.say(
      this.view.folded
        ? `${counted(this.layout.axis.folds.length, "fold")}.`
        : "Nothing is folded.",
    );
  }

  /** Changes the axis, and shows the same stretch of time on it. */
  _anew(change) {
    const { view, layout } = this;
    const before = layout.axis,
      wasFitted = view.fitted;
    const ends = [view.from, view.place(view.width)].map((place) => this._moment(before, place));
    change();
    layout.reset();
    if (wasFitted) this._fit();
    else {
      const [from, to] = ends.map((at) => layout.axis.place(at));
      view.scale = view.plot / Math.max(to - from, 1e-6);
      view.from = from;
      view.bound(layout.axis.end);
    }
    this.ask();
  }

  _moment(axis, place) {
    const t = axis.record(axis.at(place)),
      us = this.model.times[t] ?? 0;
    return { t, us: axis.mode === "wall" ? Math.max(us, axis.at(place)) : us };
  }

  setAt(t) {
    const { model, view } = this;
    view.at = t === null || t >= model.t ? null : Math.max(0, t);
    this.ask();
  }

  hide(group, key, isHidden) {
    const names = this.view.hidden[group];
    if (isHidden) names.add(key);
    else names.delete(key);
    this._arranged();
  }

  unhide() {
    for (const names of Object.values(this.view.hidden)) names.clear();
    this._arranged();
  }

  _arranged() {
    this.view.arrange(this.model);
    if (this.view.fitted) this._fit();
    this.view.bound(null);
    this.ask();
  }

  toggleTheme() {
    setTheme(isDark() ? "light" : "dark");
    this.recolour();
  }

  recolour() {
    this.painter.recolour(colours());
    this.parts.heading.update();
    this.ask();
  }

  // --- what is drawn anew ---

  /** Asks for a picture before the next frame. */
  ask() {
    if (this._isAsked || !this.isReady) return;
    this._isAsked = true;
    requestAnimationFrame(() => {
      this._isAsked = false;
      this.paint();
    });
  }

  paint() {
    this.painter.paint();
    this.twin?.paint();
    for (const part of Object.values(this.parts)) part.update?.();
    this.findings.update();
    if (this.tabs.shown === "details") this.details.update();
    if (this.tabs.shown === "overview") this.overview.update();
    this.timebar.update();
    this.minimap.paint();
    this.address.updateSoon();
  }

  /** A button that selects a node, given itself or its id. */
  link(one, text) {
    const node = typeof one === "string" ? (this.model.node(one) ?? this.model.lane(one)) : one;
    const label = text ?? (typeof one === "string" ? one : one.id);
    if (!node) return h("span", { text: label });
    return h("button", {
      class: "link",
      type: "button",
      text: label,
      onclick: () => this.select(node),
    });
  }

  say(text) {
    $("spoken").textContent = text;
  }
}
