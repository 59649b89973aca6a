// The page at work: what one does to the view, and what is drawn anew after it.

import { $, buttonOf, h } from "./dom.js";
import { between, inFocus, nodesOf } from "./focus.js";
import { Layout } from "./layout.js";
import { Contents } from "./contents.js";
import { Address, fromHash } from "./link.js";
import { Clock, Pace } from "./live.js";
import { Model } from "./model.js";
import { colours, isDark, setTheme } from "./theme.js";
import { View } from "./view.js";
import { counted, describe } from "./words.js";

const AHEAD = 1.2; // how much room there is for a run that grows
const MOST_LANES = 13; // beyond, a report begins with a graph of the agents
const FOOT = 24; // pixels below the lanes for what is said about them

export class App {
  constructor(canvas) {
    this.canvas = canvas;
    this.model = new Model();
    this.view = new View();
    this.layout = new Layout(this.model, this.view);
    this.contents = new Contents(this.model);
    this.isReady = false;
    this.twin = null; // the run beside it
    this.clock = new Clock(this);
    this.live = null; // null: a report; else "live", "waiting", "lost" or "ended"
    this._isAsked = false;
    this.story = null; // the finding that a report opens on
    this.unknown = null; // what the address names and the run has not
    this.view.changed = () => this.ask();
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
    if (model.lanes.length !== lanes) view.arrange(model);
    this.grow(model.lanes.length !== lanes);
  }

  /** Shows what has come, or that time goes on; all of it, if all of it was shown. */
  grow(isOther = false) {
    const { view, layout } = this;
    layout.update();
    const isOut = view.end > view.place(view.width - 12);
    if (view.fitted && (isOut || isOther)) view.fit();
    this.ask();
  }

  setLive(state) {
    this.live = state;
    if (state !== "live") this.clock.stop();
    this.view.room = state === "live" ? AHEAD : 1; // so that not every record moves all
    this.parts?.heading.update();
    if (state === "ended" && this.view.fitted) this.view.fit();
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
    layout.reset();
    this.story = hash || this.live ? null : this.findings.worst();
    this._choose(told.selected ?? this.story);
    view.fit();
    if (told.window) {
      view.fitted = false;
      view.from = told.window.from;
      view.scale = view.plot / (told.window.to - told.window.from);
      if (told.lane) view.laneHeight = told.lane;
      view.top = told.top ?? 0;
    }
    this.unknown = told.unknown;
    const isTeam = !hash && this.live === null && model.lanes.length > MOST_LANES;
    this.tabs.show(isTeam ? "overview" : told.tab);
    this.ask();
  }

  /** Shows all of the run again, and nothing chosen. */
  everything() {
    for (const names of Object.values(this.view.hidden)) names.clear();
    this.select(null);
    this.view.fit();
  }

  /** Shows the lane of an agent alone, with what is outside. */
  only(lane) {
    const others = this.model.lanes.filter((one) => one.i && one !== lane);
    this.view.hidden.agents = new Set(others.map((one) => one.id));
    this._arrange();
  }

  resize() {
    const { canvas, view } = this,
      ratio = devicePixelRatio || 1;
    const box = canvas.parentElement.getBoundingClientRect();
    view.width = Math.round(box.width);
    view.height = Math.round(box.height);
    $("stage").style.setProperty("--gutter", `${view.gutter}px`);
    const width = Math.round(view.width * ratio),
      height = Math.round(view.height * ratio);
    if (canvas.width === width && canvas.height === height) return;
    canvas.width = width;
    canvas.height = height;
    if (view.fitted) view.fit();
    if (this.isReady) this.paint(); // at once: a canvas of another size is empty
  }

  // --- moving ---

  /** Zooms around what is selected, if it is in sight; else around the middle. */
  zoomHere(factor) {
    const { view, layout } = this,
      one = view.selected;
    const place = { event: layout.eventAt, activation: layout.startAt }[one?.kind]?.[one.i];
    const x = place === undefined ? -1 : view.x(place);
    const isSeen = x >= view.gutter && x <= view.width;
    view.zoom(factor, isSeen ? x : view.gutter + view.plot / 2);
  }

  /** Brings something into sight. */
  reveal(one) {
    const { view } = this,
      places = this.extent(one) ?? [view.from, view.from];
    const lanes = one.kind === "agent" ? [one.i] : nodesOf(this.model, one).map(({ lane }) => lane);
    if (one.kind === "finding") view.approach(places, lanes);
    view.reveal(places, lanes[0]);
  }

  /** The places from the first to the last moment of something; null for an agent. */
  extent(one) {
    const { layout, model } = this,
      found = layout.extent(nodesOf(model, one));
    if (one.kind !== "finding") return found;
    const raised = layout.axis.place(one),
      [from, to] = found ?? [raised, raised];
    return [Math.min(from, raised), Math.max(to, raised)];
  }

  /** Has the measured stretch, or else what is selected, fill the picture. */
  fill() {
    const { selected, measured } = this.view,
      places = measured ?? (selected && this.extent(selected));
    if (places) this.view.fill(places, 0.8);
  }

  /** Measures a stretch of the axis: two places, or null. */
  measure(places) {
    this.view.measured = places;
    this.ask();
  }

  // --- choosing ---

  /** Selects a node, agent or finding; null selects nothing. */
  select(one) {
    this.address.step();
    this.unknown = null;
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
    const { events, nodes } = between(from, to);
    this._choose(null);
    this.view.setFocus(nodes);
    this.say(`${counted(events.length, "event")} from ${from.id} to ${to.id}.`);
    this.ask();
  }

  _focus() {
    const { model, view } = this;
    view.setFocus(inFocus(model, view.selected, view.hops, view.cleaned));
    this._arrange();
  }

  /** Arranges the lanes anew; lanes that come or go have all of the height again. */
  _arrange() {
    const { view } = this;
    const isOther = view.arrange(this.model);
    view.foot = this.twin || view.away ? FOOT : 0;
    if (isOther) view.fitLanes();
    this.ask();
  }

  setHops(hops) {
    this.view.hops = Math.max(0, Math.min(9, hops));
    this._focus();
  }

  /** Shows the lanes that have no part in the chosen finding, too, or folds them again. */
  toggleLanes() {
    this.view.hasAllLanes = !this.view.hasAllLanes;
    this._arrange();
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
  }

  setAxis(axis) {
    this._anew({ axis });
  }

  toggleFold() {
    this._anew({ folded: !this.view.folded });
    this.say(
      this.view.folded
        ? `${counted(this.layout.axis.folds.length, "fold")}.`
        : "Nothing is folded.",
    );
  }

  /** Changes the axis, and shows the same stretch of time on it. */
  _anew(change) {
    const { view, layout } = this;
    const before = layout.axis;
    const ends = [view.from, view.place(view.width)].map((place) => before.moment(place));
    Object.assign(view, change);
    layout.reset();
    view.measured = null;
    if (view.fitted) view.fit();
    else view.fill(ends.map((at) => layout.axis.place(at)), 1);
  }

  setAt(t) {
    const { model, view } = this;
    const at = t === null || t >= model.t ? null : Math.max(0, t);
    if (at === view.at) return;
    view.at = at;
    this.ask();
  }

  hide(group, key, isHidden) {
    const names = this.view.hidden[group];
    if (isHidden) names.add(key);
    else names.delete(key);
    this._arrange();
  }

  toggleTheme() {
    setTheme(isDark() ? "light" : "dark");
    this.recolour();
  }

  recolour() {
    this.painter.recolour(colours());
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
    return buttonOf(label, () => this.select(node), { class: "link" });
  }

  say(text) {
    $("spoken").textContent = text;
  }
}
