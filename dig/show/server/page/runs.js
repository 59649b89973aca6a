// The list of runs: asked for every two seconds, and shown again if something has changed.
// All texts come from traces, so they are only ever put in as text.

const EVERY_MS = 2000;
const COLUMNS = [
  { label: "run", text: (run) => run.path, sort: (run) => run.path },
  { label: "task", text: (run) => word(run.task), sort: (run) => word(run.task) },
  { label: "method", text: (run) => word(run.method), sort: (run) => word(run.method) },
  { label: "agents", text: (run) => run.agents || "", sort: (run) => run.agents, isNumber: true },
  { label: "outcome", text: status, sort: status },
  ...["error", "warning", "notice"].map((worth) => ({
    label: `${worth}s`,
    text: (run) => run.worth[worth] || "",
    sort: (run) => run.worth[worth] || 0,
    isNumber: true,
  })),
  { label: "silenced", text: (run) => run.worth.silenced || "",
    sort: (run) => run.worth.silenced || 0, isNumber: true },
  { label: "findings", text: findings, sort: (run) => total(run.findings) },
  { label: "events", text: (run) => run.events.toLocaleString("en"), sort: (run) => run.events,
    isNumber: true },
  { label: "time", text: (run) => `${run.seconds.toFixed(1)} s`, sort: (run) => run.seconds,
    isNumber: true },
  { label: "began", text: (run) => (run.began ?? "").slice(0, 16).replace("T", " "),
    sort: (run) => run.began ?? "" },
];

const state = { runs: [], folder: "", column: 0, isDown: true, filter: "", shown: "", error: "" };
window.digRuns = state; // for whoever tests this page

const $ = (id) => document.getElementById(id);

function word(value) {
  if (value === null || value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

function status(run) {
  return run.state === "ended" || run.state === "cut off" ? run.outcome ?? run.state : run.state;
}

function total(counts) {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

function findings(run) {
  return Object.entries(run.findings).sort().map(([name, count]) => `${name} ${count}`).join(" · ");
}

function counted(shown, all) {
  if (!all) return "There are no runs here yet. What comes is shown by itself.";
  return shown === all ? `${all} ${all === 1 ? "run" : "runs"}` : `${shown} of ${all} runs`;
}

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

function chosen() {
  const { sort } = COLUMNS[state.column];
  const wanted = state.filter.toLowerCase();
  const has = (run) => COLUMNS.some(({ text }) => String(text(run)).toLowerCase().includes(wanted));
  const sign = state.isDown ? -1 : 1;
  return state.runs.filter(has).sort((a, b) => sign * compare(sort(a), sort(b)));
}

function row(run) {
  const tr = document.createElement("tr");
  tr.className = run.state.replace(" ", "-");
  COLUMNS.forEach((column, i) => {
    const cell = element(i ? "td" : "th", "", i ? {} : { scope: "row" });
    if (column.isNumber) cell.className = "number";
    if (column.label === "outcome") cell.className = "outcome";
    const text = String(column.text(run));
    cell.append(i ? text : element("a", text, { href: run.address }));
    tr.append(cell);
  });
  if (run.problem) tr.title = run.problem;
  return tr;
}

function show() {
  const runs = chosen();
  const hadFocus = document.activeElement?.getAttribute("href");
  $("folder").textContent = state.folder;
  $("columns").replaceChildren(...COLUMNS.map(heading));
  $("runs").replaceChildren(...runs.map(row));
  $("count").textContent = state.error || counted(runs.length, state.runs.length);
  if (hadFocus) document.querySelector(`a[href="${CSS.escape(hadFocus)}"]`)?.focus();
}

function heading(column, i) {
  const isSorted = i === state.column;
  const cell = element("th", "", { scope: "col" });
  if (column.isNumber) cell.className = "number";
  if (isSorted) cell.setAttribute("aria-sort", state.isDown ? "descending" : "ascending");
  const button = element("button", column.label, { type: "button" });
  button.addEventListener("click", () => {
    state.isDown = isSorted ? !state.isDown : false;
    state.column = i;
    show();
    $("columns").children[i].firstChild.focus();
  });
  cell.append(button);
  return cell;
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

$("filter").addEventListener("input", (event) => {
  state.filter = event.target.value;
  show();
});
ask();
