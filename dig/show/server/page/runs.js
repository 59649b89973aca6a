// The list of runs: asked for every two seconds, and shown again if something has changed.
// All texts come from traces, so they are only ever put in as text.

import { $, buttonOf, h } from "./dom.js";

const EVERY_MS = 2000;
const COLUMNS = [
  { label: "run", text: name, sort: (run) => run.path, title: (run) => run.path },
  { label: "ended", text: (run) => run.problem ?? run.headline, sort: (run) => run.ending,
    style: (run) => `ended ${standing(run)}` },
  { label: "note", text: (run) => run.note, title: (run) => run.note },
  { label: "waiting", text: (run) => run.waits.length || "", sort: (run) => run.waits.length,
    style: (run) => (run.waits.length ? "warning" : ""), isNumber: true, title: waiting },
  { label: "score", text: (run) => run.figures.replace(/^rmse [\d.,e+-]+/, "$& (0 is right)"),
    sort: (run) => run.figure ?? Infinity, style: (run) => run.grade,
    title: (run) => run.score?.says },
  { label: "method", text: (run) => word(run.method) },
  { label: "agents", text: (run) => run.agents || "", isNumber: true },
  { label: "alarms", text: (run) => alarms(run) || "", sort: alarms, isNumber: true },
  { label: "findings", text: findings, sort: (run) => total(run.findings) },
  { label: "healed", text: (run) => total(run.heals) || "", sort: (run) => total(run.heals),
    isNumber: true },
  { label: "time", text: (run) => `${run.seconds.toFixed(1)} s`, sort: (run) => run.seconds,
    isNumber: true },
];
/** What runs are chosen by: each has some values, of which one is wanted. */
const CHOICES = {
  verdict: (run) => [run.ending],
  agent: (run) => run.who,
  pattern: (run) => Object.keys(run.findings),
  task: (run) => [word(run.task ?? run.team)],
  method: (run) => [word(run.method)],
};
const IDS = /^\d{8}-\d{6}-[0-9a-f]{6}$/; // names that nobody gave
const ORDER = new Intl.Collator("en", { numeric: true });

const state = {
  runs: [], folder: "", column: 0, isDown: true, filter: "", shown: "", error: "",
  wanted: {}, // the value of each choice; empty: any
  two: [], // the names of the runs to compare
};
window.digRuns = state; // for whoever tests this page

function word(value) {
  if (value === null || value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** The name of a run: as its directory was called, or else its task and its beginning. */
function name(run) {
  const task = word(run.task ?? run.team);
  if (!IDS.test(run.path) || !task) return run.path;
  return `${task}, ${(run.began ?? run.path).slice(0, 19).replace("T", " ")}`;
}

/** How well a run has ended, as far as its score or its requests tell. */
function standing(run) {
  if (run.state !== "ended") return run.state.replace(" ", "-");
  return run.grade;
}

function total(counts) {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

/** The task of a run whose name does not tell it. */
function task(run) {
  return h("small", { text: run.path === name(run) ? word(run.task ?? run.team) : "" });
}

function alarms(run) {
  return (run.worth.error ?? 0) + (run.worth.warning ?? 0);
}

function findings(run) {
  return Object.entries(run.findings).sort().map(([name, count]) => `${name} ${count}`).join(" · ");
}

/** Who waits for a person, since when, and for what. */
function waiting(run) {
  const since = (one) => one.since ?? `${one.since_s.toFixed(1)} s`;
  return run.waits.map((one) => `${one.agent} since ${since(one)}: ${one.request}`).join("\n");
}

function counted(shown, all) {
  if (!all) return "There are no runs here yet. What comes is shown by itself.";
  return shown === all ? `${all} ${all === 1 ? "run" : "runs"}` : `${shown} of ${all} runs`;
}

function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return ORDER.compare(a, b);
}

function chosen() {
  const { text, sort = text } = COLUMNS[state.column];
  const wanted = state.filter.toLowerCase();
  const has = (run) =>
    Object.entries(CHOICES).every(
      ([label, values]) => !state.wanted[label] || values(run).includes(state.wanted[label]),
    ) &&
    [run.path, ...COLUMNS.map(({ text }) => text(run))].some((text) =>
      String(text).toLowerCase().includes(wanted),
    );
  const sign = state.isDown ? -1 : 1;
  return state.runs.filter(has).sort((a, b) => sign * compare(sort(a), sort(b)));
}

function row(run) {
  const cells = COLUMNS.map(({ label, text, style, isNumber, title }, i) => {
    const shown = String(text(run)),
      keys = { class: `${isNumber ? "number" : ""} ${style?.(run) ?? ""}`.trim(), title: title?.(run) || null };
    if (!i) return h("th", { scope: "row", ...keys }, picker(run), h("a", { text: shown, href: run.address }), task(run));
    const parts = label === "ended" ? [h("b", { text: run.ending }), reason(run)] : [shown];
    return h("td", { "data-label": label, ...keys }, parts);
  });
  return h("tr", { class: run.state.replace(" ", "-") }, cells);
}

/** Why a run ended as it did: the sentence behind its verdict. */
function reason(run) {
  if (run.problem) return `: ${run.problem}`;
  return run.headline.startsWith(run.ending) ? run.headline.slice(run.ending.length).replaceAll("`", "") : "";
}

/** The box that takes a run into the two that are compared. */
function picker(run) {
  const onchange = () => {
    const others = state.two.filter((name) => name !== run.path);
    state.two = box.checked ? [...others, run.path].slice(-2) : others;
    show();
  };
  const box = h("input", { type: "checkbox", "aria-label": `Compare ${run.path}`, onchange });
  box.checked = state.two.includes(run.path);
  return box;
}

function show() {
  const runs = chosen();
  const before = document.activeElement,
    label = before?.getAttribute("href") ?? before?.getAttribute("aria-label");
  $("folder").textContent = state.folder;
  $("columns").replaceChildren(...COLUMNS.map(heading));
  $("runs").replaceChildren(...runs.map(row));
  $("choices").replaceChildren(...Object.entries(CHOICES).map(choice).filter(Boolean));
  $("compare").disabled = state.two.length < 2;
  $("count").textContent = state.error || counted(runs.length, state.runs.length);
  const same = [...document.querySelectorAll("a[href], [aria-label]")].find((one) =>
    label && [one.getAttribute("href"), one.getAttribute("aria-label")].includes(label));
  same?.focus();
}

/** A list of what can be chosen, if there are several. */
function choice([label, valuesOf]) {
  const values = [...new Set(state.runs.flatMap(valuesOf))].filter(Boolean).sort();
  if (values.length < 2) return null;
  const onchange = () => {
    state.wanted[label] = select.value;
    show();
  };
  const option = (text, value) => h("option", { text, value });
  const select = h("select", { "aria-label": label, onchange }, option(`any ${label}`, ""), values.map((one) => option(one, one)));
  select.value = state.wanted[label] ?? "";
  return select;
}

function heading({ label, isNumber }, i) {
  const isSorted = i === state.column,
    order = state.isDown ? "descending" : "ascending";
  const sort = () => {
    state.isDown = isSorted ? !state.isDown : false;
    state.column = i;
    show();
    $("columns").children[i].firstChild.focus();
  };
  const keys = { scope: "col", class: isNumber && "number", "aria-sort": isSorted && order };
  return h("th", keys, buttonOf(label, sort));
}

async function ask() {
  try {
    const answer = await fetch("runs");
    const text = await answer.text();
    if (!answer.ok) throw new Error(text.trim());
    if (text !== state.shown || state.error) {
      Object.assign(state, JSON.parse(text), { shown: text, error: "" });
      show();
    }
  } catch (error) {
    const why = error instanceof TypeError ? "the server does not answer" : error.message;
    if (state.error !== why) {
      state.error = why;
      show();
    }
  }
  setTimeout(ask, EVERY_MS);
}

$("compare").addEventListener("click", () => {
  const [one, other] = state.two.map((name) => state.runs.find((run) => run.path === name));
  location.href = `${one.address}with/${other.address.split("/")[1]}`;
});
$("wanted").addEventListener("submit", (event) => event.preventDefault());
$("filter").addEventListener("input", (event) => {
  state.filter = event.target.value;
  show();
});
ask();
