// The source of rows: out of the page itself, or live from the server that gave the page.

import { Twin } from "./twin.js";
import { countIn } from "./words.js";

const AT_ONCE = 4000; // rows between two frames, so that a large run does not freeze the page

/** Reads head and rows into an app. */
export async function start(app, element) {
  const address = element.dataset.source;
  if (address) follow(app, address);
  else await readInlined(app, element.textContent);
  element.remove();
}

async function readInlined(app, text) {
  const bytes = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const { head, rows, twin } = JSON.parse(await new Response(stream).text());
  countIn(head.unit ?? "s");
  app.setHead(head);
  app.add(rows);
  if (twin) app.twin = new Twin(app, twin);
  if (head.open && !location.hash) history.replaceState(null, "", `#${head.open}`);
  app.ready();
}

/** Follows an event stream; it comes again by itself, and what it says twice is left out. */
function follow(app, address) {
  const source = new EventSource(address);
  const waiting = [];
  let isReady = false,
    isAsked = false;
  const drain = () => {
    isAsked = false;
    app.add(waiting.splice(0, AT_ONCE));
    if (!isReady) {
      isReady = true;
      app.ready();
    }
    if (waiting.length) ask();
  };
  const ask = () => {
    if (isAsked) return;
    isAsked = true;
    setTimeout(drain, 0);
  };
  source.addEventListener("open", () => app.setLive("live"));
  source.addEventListener("error", () =>
    app.setLive(source.readyState === EventSource.CLOSED ? "lost" : "waiting"),
  );
  source.addEventListener("head", (e) => app.setHead(JSON.parse(e.data)));
  source.addEventListener("clock", (e) => app.clock.take(JSON.parse(e.data)));
  source.addEventListener("message", (e) => {
    for (const row of JSON.parse(e.data)) waiting.push(row);
    ask();
  });
  source.addEventListener("end", () => {
    source.close();
    app.setLive("ended");
  });
}
