// What a person can do about a finding or a run: commands to copy and, where a server listens, a
// rule for a false alarm, and a note. Nothing is written that was not shown before.

import { buttonOf, h, para } from "./dom.js";
import { section } from "./pieces.js";

const MOST_REASON = 200,
  MOST_NOTE = 4000; // characters, as the server takes them
const SHOWN_MS = 2000;
const forms = new WeakMap(); // finding -> its form, so that what is typed stays

/** Copies a text, and says so on the button for a moment. */
export async function copy(app, text, button, said = "Copied") {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = said;
  } catch {
    button.textContent = "Select and copy it";
  }
  app.say(`${button.textContent}.`);
  setTimeout(() => (button.textContent = before), SHOWN_MS);
}

/** The commands about a finding, each to be copied by a click. */
export function commands(app, { t, record, pattern, agents }) {
  const { place, can_try: canTry } = app.model.head;
  if (!place) return null; // a page of something else than a run
  const about = `${pattern}${agents?.length ? `=${agents[0]}` : ""}`;
  const isKnown = /^[A-Z]+$/.test(pattern);
  return h("dl.acts",
    command(app, "Explain it", `digmon show ${place} ${record ?? t}`),
    isKnown && canTry
      ? command(app, "Try changes", `digmon why ${place} --good findings.${pattern}==0 --try`)
      : null,
    command(app, "Leave it out of a check", `digmon check ${place} --ignore ${quoted(about)}`),
  );
}

function command(app, label, text) {
  const button = h("button", { type: "button", text: "Copy", "aria-label": `Copy: ${text}` });
  button.addEventListener("click", () => copy(app, text, button));
  return [h("dt", label, button), h("dd", h("code", { text }))];
}

/** A word for a command line. */
function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** The form that makes a rule of a false alarm; only where there is a server. */
export function falseAlarm(app, finding) {
  if (app.live === null || !app.model.head.place || finding.silenced !== null) return null;
  return keep(finding, () => alarmForm(app, finding));
}

/** The form of a finding or of the run, with what was typed, and with the cursor. */
function keep(key, make) {
  if (!forms.has(key)) forms.set(key, make());
  const form = forms.get(key),
    before = document.activeElement;
  if (form.contains(before)) queueMicrotask(() => before.focus({ preventScroll: true }));
  return form;
}

function alarmForm(app, { t, id }) {
  const reason = h("input", { type: "text", required: true, maxlength: MOST_REASON });
  const answer = h("div", { role: "status" });
  const number = id.length - String(t).length; // a sign for each finding before it at this record
  const send = (shown) =>
    post("false-alarm", { t, number, reason: reason.value.trim(), shown }, answer, (done) => [
      h("pre", { text: done.rule }),
      done.is_written
        ? h("dl.acts", command(app, `It stands in ${done.file} now`,
            `digmon check ${app.model.head.place} --config ${quoted(done.file)}`))
        : buttonOf(`Add it to ${done.file}`, () => send(done.rule)),
    ]);
  return form(
    () => send(null),
    h("label", "A false alarm, because ", reason),
    h("button", { type: "submit", text: "Show the rule" }),
    answer,
  );
}

/** The note on the run; it can be written where there is a server. */
export function note(app) {
  const { note, place } = app.model.head;
  if (app.live === null) return note ? section("Note", para("note", note)) : null;
  if (!place) return null;
  return section("Note", keep(app, () => noteForm(note)));
}

function noteForm(before) {
  const text = h("textarea", { maxlength: MOST_NOTE, rows: 3, "aria-label": "Note on this run" });
  text.value = before;
  const answer = h("div", { role: "status" });
  const send = () => post("note", { text: text.value }, answer, () => ["It is written."]);
  return form(send, text, h("button", { type: "submit", text: "Write" }), answer);
}

function form(send, ...children) {
  const onsubmit = (event) => {
    event.preventDefault();
    send();
  };
  return h("form.steps", { onsubmit }, ...children);
}

/** Sends what a person wrote, and shows what came of it. */
async function post(act, body, element, shown) {
  const headers = { "Content-Type": "application/json" };
  try {
    const answer = await fetch(act, { method: "POST", headers, body: JSON.stringify(body) });
    const text = await answer.text();
    element.replaceChildren(...(answer.ok ? shown(JSON.parse(text)) : [text.trim()]));
  } catch {
    element.textContent = "The server does not answer.";
  }
}
