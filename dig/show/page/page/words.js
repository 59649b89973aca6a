// Times, numbers and what happened to an event, in words.

let unit = "s";

/** Takes another unit of time than seconds: steps, where there is no clock. */
export function countIn(name) {
  unit = name;
}

/** A time on the axis, as exact as its steps. */
export function clock(us, step) {
  const seconds = us / 1e6;
  const digits = Math.max(0, Math.min(6, Math.ceil(-Math.log10(step / 1e6) - 1e-9)));
  if (seconds < 100 || digits > 0 || unit !== "s") return `${seconds.toFixed(digits)} ${unit}`;
  const minutes = Math.floor(seconds / 60),
    rest = Math.round(seconds % 60);
  if (minutes < 60) return `${minutes}:${String(rest).padStart(2, "0")}`;
  return `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}:${String(rest).padStart(2, "0")}`;
}

export function seconds(us) {
  const s = us / 1e6;
  if (unit !== "s") return `${s.toFixed(1)} ${unit}`;
  if (s >= 600) return `${Math.floor(s / 60).toLocaleString("en")} min ${Math.floor(s % 60)} s`;
  return s >= 0.1 ? `${s.toFixed(1)} s` : `${(s * 1000).toFixed(s < 0.001 ? 2 : 0)} ms`;
}

/** The worths of findings, the worst first; those that a policy silences are apart. */
const WORTHS = ["error", "warning", "notice", "silenced"];

/** The worth of a finding. */
export function worth(finding) {
  return finding.silenced === null ? finding.severity : "silenced";
}

/** The place of a finding in a list: less for a worse one. */
export function rank(finding) {
  return WORTHS.indexOf(worth(finding));
}

/** The number of findings of each worth that some have, the worst first. */
export function weighed(findings) {
  const counts = Object.fromEntries(WORTHS.map((one) => [one, 0]));
  for (const one of findings) counts[worth(one)] += 1;
  return Object.fromEntries(Object.entries(counts).filter(([, n]) => n));
}

export function number(n) {
  return Number(n).toLocaleString("en", { maximumFractionDigits: 2 });
}

export function counted(n, noun) {
  return `${number(n)} ${noun}${n === 1 ? "" : "s"}`;
}

export const PAST = {
  "-1": "in front of",
  0: "consumed by",
  1: "delayed by",
  2: "rerouted by",
  3: "discarded by",
};

export const ACTIONS = {
  respond: "responded",
  wait: "waited",
  reroute: "passed work on",
  discard: "dropped work",
  consume: "took in, made nothing",
  error: "failed",
  off: "called off",
  working: "at work",
};

export function list(names, most = Infinity) {
  const rest = (names?.length ?? 0) > most ? " ..." : "";
  return names?.length ? names.slice(0, most).join(", ") + rest : "nobody";
}

/** The origin of an event. */
export function origin(event) {
  if (event.by) return `of ${event.by.agent}`;
  return event.source === "system" ? "of healing" : "from outside";
}

/** One step in the story of an event. */
export function told(step) {
  switch (step.what) {
    case "emit":
      if (step.by === null) return `came from outside, for ${list(step.to)}`;
      if (step.by === "system") return `made by healing, for ${list(step.to)}`;
      return `emitted by ${step.by}, for ${list(step.to)}, and held`;
    case "deliver":
      return step.to === null ? "accepted as the answer" : `delivered to ${step.to}`;
    case "redirect":
      return `sent to ${list(step.to)}`;
    case "expire":
      return "expired: on its way to nobody any more";
    case "start":
      return `shown to ${step.activation.id} of ${step.activation.agent}`;
    case "end": {
      const who = `${PAST[step.fate]} ${step.activation.id} of ${step.activation.agent}`;
      return step.fate === 2 ? `${who}, to ${list(step.to)}` : who;
    }
    case "leave":
      return `lost with ${step.agent}, who left`;
    case "finding":
      return `${step.finding.pattern}: ${step.finding.says}`;
    case "heal":
      return `healing ${step.heal.says}`;
    default:
      return step.what;
  }
}

/** Something that was chosen, in one sentence. */
export function describe(one) {
  switch (one.kind) {
    case "finding":
      return `Finding ${one.pattern}: ${one.says}`;
    case "agent":
      return `Agent ${one.id}, ${counted(one.activations.length, "activation")}.`;
    case "activation":
      return `Activation ${one.id} of ${one.agent}: ${number(one.inputs.length)} in, ${number(one.outputs.length)} out.`;
    default:
      return `Event ${one.id}, ${one.type} ${origin(one)}.`;
  }
}
