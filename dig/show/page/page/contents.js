// The content of an event, in a few words. Payloads of one team have much in common, the name of the
// task for instance: what most of them have says nothing about one, and is left out.

const SAMPLE = 200; // payloads
const TEXTS = ["content", "text", "message"]; // keys whose text is all that matters beside them

export class Contents {
  constructor(model) {
    Object.assign(this, { model, common: null, size: 0 });
  }

  /** The payload of an event in at most so many characters; empty if it has none. */
  excerpt(event, most) {
    const text = this._text(event);
    return text.length > most ? `${text.slice(0, Math.max(0, most - 1)).trimEnd()}…` : text;
  }

  _text(event) {
    if (event.payload === undefined) return "";
    const { events } = this.model,
      size = Math.min(SAMPLE, events.length);
    if (this.size !== size) {
      this.size = size;
      this.common = common(events.slice(0, size).map(parsed));
    }
    const value = parsed(event);
    if (!isObject(value)) return flat(value);
    const own = Object.entries(value).filter(([key, one]) => !this.common.has(sign(key, one)));
    return flat(own.length ? Object.fromEntries(own) : value);
  }
}

function parsed({ payload }) {
  try {
    return JSON.parse(payload);
  } catch {
    return payload; // a text, or cut
  }
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function sign(key, value) {
  return `${key} ${JSON.stringify(value)}`;
}

/** The entries that more than half of some objects have. */
function common(values) {
  const objects = values.filter(isObject),
    counts = new Map();
  for (const one of objects.flatMap((value) => Object.entries(value).map((pair) => sign(...pair))))
    counts.set(one, (counts.get(one) ?? 0) + 1);
  return new Set([...counts].filter(([, n]) => n > 2 && n > objects.length / 2).map(([one]) => one));
}

/** A value as text without the signs of JSON. */
function flat(value) {
  if (Array.isArray(value)) return value.map(flat).join(", ");
  if (!isObject(value)) return String(value).replace(/[\s{}[\]"]+/g, " ").trim();
  const text = TEXTS.find((key) => typeof value[key] === "string");
  if (text) return flat(value[text]);
  const entries = Object.entries(value);
  if (entries.length === 1 && /[a-z]/i.test(flat(entries[0][1]))) return flat(entries[0][1]);
  return entries.map(([key, one]) => `${key}: ${flat(one)}`).join(", ");
}
