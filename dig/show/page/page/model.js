// The run as the page knows it: follows the rows of a trace, one after the other. What a finding
// means, and what is a failure at all, is said in the rows; nothing is judged here.

import { Repeats } from "./repeats.js";

export const FATES = ["consume", "delay", "reroute", "discard"];
const SYSTEM = 0; // the lane of what comes from outside and of healing

const CONSUME = 0,
  DELAY = 1,
  REROUTE = 2;

export class Model {
  constructor() {
    this.head = {};
    this.run = { agents: [], limits: {} };
    this.finish = null;
    this.t = -1; // of the latest row
    this.us = 0;
    this.rows = 0;
    this.times = []; // wall time of each record, by its number
    this.lanes = [];
    this.events = [];
    this.activations = [];
    this.edges = []; // delivery edges
    this.findings = [];
    this.heals = [];
    this.incidents = [];
    this.outages = [];
    this.clockUs = 0; // of a run that goes on: what its clock shows now
    this.beside = null; // the model of the run below
    this.failed = new Map(); // part of the monitor that failed -> how often, and the latest failure
    this.types = new Map(); // type of event -> how many
    this.usage = new Map();
    this.version = 0;
    this.repeats = new Repeats();
    this._byId = new Map();
    this._laneOf = new Map();
    this._findingAt = new Map();
    this._found = new Set();
    this._addLane("system");
  }

  /** Takes further rows; what was taken before is left out. Returns how many were new. */
  add(rows) {
    const before = this.rows;
    for (const row of rows) {
      if (row.found ? this._isKnown(row) : row.t <= this.t) continue;
      if (!row.found) {
        this.t = row.t;
        this.us = Math.round(row.ts * 1e6);
        this.times[row.t] = this.us;
      }
      const take = this[`_${row.kind}`];
      if (take) take.call(this, row, { t: row.t, us: Math.round(row.ts * 1e6) });
      this.rows += 1;
    }
    if (this.rows > before) this.version += 1;
    return this.rows - before;
  }

  /** A finding that has no record, since the trace does not tell of it, came before. */
  _isKnown(row) {
    const key = [row.t, row.pattern, row.stage, row.says].join("|");
    const isKnown = this._found.has(key);
    this._found.add(key);
    return isKnown;
  }

  /** The latest moment: that of the last record or, while a run goes on, what its clock shows. */
  get now() {
    return { t: this.t, us: Math.max(this.us, this.clockUs) };
  }

  /** An event or activation by its id. */
  node(id) {
    return this._byId.get(id);
  }

  lane(name) {
    return this._laneOf.get(name);
  }

  /** A finding by its id: the number of its record, with signs where several have it. */
  finding(id) {
    return this._findingAt.get(id);
  }

  _addLane(name) {
    const lane = {
      kind: "agent",
      i: this.lanes.length,
      id: name,
      activations: [],
      events: [],
      buffer: new Map(),
      load: [],
      sent: new Map(),
      moves: [],
      busyUs: 0,
      waits: 0,
      turns: 0,
      current: null,
      fates: [0, 0, 0, 0],
      present: true,
    };
    this.lanes.push(lane);
    this._laneOf.set(lane.i === SYSTEM ? null : name, lane);
    return lane;
  }

  _agent(name) {
    return this._laneOf.get(name) || this._addLane(name);
  }

  // --- one function a kind of row ---

  _run(row) {
    this.run = row;
    for (const name of row.agents) this._agent(name);
  }

  _emit(row, at) {
    const by = row.by === null || row.by === "system" ? null : this._byId.get(row.by);
    const event = {
      kind: "event",
      i: this.events.length,
      id: row.event,
      ...at,
      by,
      source: row.by,
      type: row.final ? "final" : row.type,
      final: row.final,
      to: row.to,
      payload: row.payload,
      chars: row.chars || 0,
      policy: row.policy,
      seen: [],
      told: [],
      findings: [],
      notes: [],
      landed: new Map(),
      left: new Map(), // lane -> where the event comes from when that agent looks at it again
      touched: by ? at.t : Infinity,
      lane: by ? by.lane : SYSTEM,
    };
    this.events.push(event);
    this._byId.set(event.id, event);
    this.lanes[event.lane].events.push(event);
    this.types.set(event.type, (this.types.get(event.type) || 0) + 1);
    if (by) {
      by.outputs.push(event);
      by.touched = Math.min(by.touched, at.t);
    }
    this._tell(event, at, "emit", { by: row.by, to: row.to });
  }

  _deliver(row, at) {
    const event = this._byId.get(row.event);
    if (!event) return;
    this._tell(event, at, "deliver", { to: row.to });
    if (row.to === null) {
      event.accepted = at.t;
      return;
    }
    const lane = this._agent(row.to);
    lane.buffer.set(event, at);
    event.landed.set(lane.i, at);
    const from = this.lanes[event.lane].sent;
    from.set(lane.i, (from.get(lane.i) || 0) + 1);
    this._loaded(lane, at);
  }

  _start(row, at) {
    const lane = this._agent(row.agent);
    const activation = {
      kind: "activation",
      i: this.activations.length,
      id: row.activation,
      ...at,
      lane: lane.i,
      agent: row.agent,
      end: null,
      inputs: [],
      outputs: [],
      usage: null,
      error: null,
      findings: [],
      action: "working",
      touched: Infinity,
    };
    for (const id of row.inputs) {
      const event = this._byId.get(id);
      if (!event) continue;
      const edge = {
        i: this.edges.length,
        event,
        activation,
        fate: -1,
        to: null,
        landed: lane.buffer.get(event) || at,
        from: event.left.get(lane.i) ?? null, // null: from where it was generated
      };
      this.edges.push(edge);
      activation.inputs.push(edge);
      event.seen.push(edge);
    }
    this.activations.push(activation);
    this._byId.set(activation.id, activation);
    lane.activations.push(activation);
    lane.turns += row.part ? 0 : 1;
    lane.current = activation;
    this._loaded(lane, at);
  }

  _end(row, at) {
    const activation = this._byId.get(row.activation);
    if (!activation) return;
    const lane = this.lanes[activation.lane];
    const named = new Map(row.fates.map((one) => [one.event, one]));
    activation.end = { ...at, isOff: row.cancelled };
    activation.usage = row.usage ?? null;
    activation.error = row.error ?? null;
    this._spend(row.usage);
    for (const edge of activation.inputs) {
      const one = named.get(edge.event.id);
      const silent = edge.event.source === "system" ? "consume" : "delay";
      this._decide(edge, FATES.indexOf(one ? one.fate : silent), one?.to ?? null, at, lane);
    }
    activation.action = action(activation, row.outputs.length);
    lane.busyUs += at.us - activation.us;
    if (activation.action === "wait") lane.waits += 1;
    lane.current = null;
    this._loaded(lane, at);
    this.repeats.take(activation, row.outputs.length);
  }

  _decide(edge, fate, to, at, lane) {
    const { event, activation } = edge;
    edge.fate = fate;
    edge.to = to;
    lane.fates[fate] += 1;
    if (fate === CONSUME) {
      event.touched = Math.min(event.touched, at.t);
      activation.touched = Math.min(activation.touched, at.t);
    }
    if (fate !== DELAY) lane.buffer.delete(event);
    const heirs = fate === DELAY ? [activation.agent] : fate === REROUTE ? to : [];
    this._leaves(event, heirs, { ...at, lane: activation.lane, activation });
  }

  /** Notes where an event goes on from to some agents: not from where it was generated. */
  _leaves(event, agents, from) {
    for (const name of agents ?? []) event.left.set(this._agent(name).i, from);
  }

  _join(row, at) {
    const lane = this._agent(row.agent);
    lane.present = true;
    lane.moves.push({ ...at, what: "joined" });
  }

  _leave(row, at) {
    const lane = this._agent(row.agent);
    lane.present = false;
    lane.moves.push({ ...at, what: "left" });
    for (const event of lane.buffer.keys()) this._tell(event, at, "leave", { agent: row.agent });
    lane.buffer.clear();
    if (lane.current) lane.current.gone = at; // it never ends
    lane.current = null;
    this._loaded(lane, at);
  }

  _redirect(row, at) {
    const event = this._byId.get(row.event);
    this._tell(event, at, "redirect", { to: row.to });
    if (event) this._leaves(event, row.to, { ...at, lane: event.lane });
  }

  _expire(row, at) {
    this._tell(this._byId.get(row.event), at, "expire", {});
  }

  _finding(row, at) {
    let id = String(row.t);
    while (this._findingAt.has(id)) id += "+";
    const finding = { ...row, ...at, i: this.findings.length, id, heals: [] };
    this.findings.push(finding);
    this._findingAt.set(id, finding);
    for (const id of row.ids) {
      const node = this._byId.get(id);
      if (!node) continue;
      node.findings.push(finding);
      if (node.kind === "event") this._tell(node, at, "finding", { finding });
    }
  }

  _heal(row, at) {
    const heal = { ...row, ...at };
    this.heals.push(heal);
    this._findingAt.get(String(row.finding))?.heals.push(heal);
    const event = this._byId.get(row.event);
    if (event && row.note) event.notes.push(heal);
    this._tell(event, at, "heal", { heal });
  }

  _incident(row, at) {
    const incident = { ...row, ...at };
    this.incidents.push(incident);
    if (row.mark) this.outages.push(incident);
    if (row.failed === undefined) return;
    const times = (this.failed.get(row.failed)?.times ?? 0) + 1;
    this.failed.set(row.failed, { times, says: row.says });
  }

  _finish(row, at) {
    this.finish = { ...row, ...at };
    this._spend(row.usage);
  }

  // --- helpers ---

  _tell(event, at, what, more) {
    event?.told.push({ t: at.t, us: at.us, what, ...more });
  }

  /** The number of events that wait in a buffer: no activation looks at them. */
  _loaded(lane, at) {
    const n = Math.max(0, lane.buffer.size - (lane.current?.inputs.length ?? 0));
    if (lane.load.length === 0 || lane.load[lane.load.length - 1].n !== n)
      lane.load.push({ ...at, n });
  }

  _spend(usage) {
    for (const [key, value] of Object.entries(usage ?? {})) {
      if (typeof value === "number") this.usage.set(key, (this.usage.get(key) || 0) + value);
    }
  }
}

/** The deed of an activation, in one word. */
function action(activation, outputs) {
  if (activation.error !== null) return activation.end.isOff ? "off" : "error";
  if (outputs) return "respond";
  const fates = new Set(activation.inputs.map((edge) => FATES[edge.fate]));
  if (fates.size === 0 || (fates.size === 1 && fates.has("delay"))) return "wait";
  if (fates.has("reroute")) return "reroute";
  return fates.has("discard") ? "discard" : "consume";
}
