// The neighbourhood of some nodes: so many hops back to what led to them, and on to what they led
// to.

const NEAR = 2; // hops around a node, and around a finding that no path proves

/** The nodes within some hops of others; a hop is from an event to an activation or back. */
export function around(nodes, hops, isCleaned) {
  const seen = new Set(nodes);
  for (const step of [before, after]) {
    let edge = [...nodes];
    for (let hop = 0; hop < hops && edge.length; hop += 1) {
      const next = [];
      for (const node of edge) {
        for (const other of step(node, isCleaned)) {
          if (!seen.has(other)) {
            seen.add(other);
            next.push(other);
          }
        }
      }
      edge = next;
    }
  }
  return seen;
}

/** What led to a node. */
export function before(node, isCleaned) {
  if (node.kind === "event") return node.by ? [node.by] : [];
  return node.inputs.filter((edge) => !isCleaned || edge.fate === 0).map((edge) => edge.event);
}

/** What a node led to. */
export function after(node, isCleaned) {
  if (node.kind === "activation") return node.outputs;
  return node.seen.filter((edge) => !isCleaned || edge.fate === 0).map((edge) => edge.activation);
}

/** What is shown of a selection: the paths that prove a finding, the neighbourhood of a node. */
export function inFocus(model, selected, hops, isCleaned) {
  const nodes = nodesOf(model, selected);
  if (!nodes.length) return null;
  const ids = (selected.paths ?? []).flatMap((path) => path.nodes),
    proof = ids.map((id) => model.node(id)).filter(Boolean);
  return around([...nodes, ...proof], proof.length ? hops : hops + NEAR, isCleaned);
}

/** What went from one agent to another: its events, and these with who made and who saw them. */
export function between(from, to) {
  const events = from.events.filter((event) => event.landed.has(to.i)),
    makers = events.map((event) => event.by).filter(Boolean),
    seen = events.flatMap((event) => event.seen.map((edge) => edge.activation)),
    seers = seen.filter((activation) => activation.lane === to.i);
  return { events, nodes: new Set([...events, ...makers, ...seers]) };
}

/** The nodes that a selection stands for. */
export function nodesOf(model, selected) {
  if (!selected) return [];
  if (selected.kind === "finding") {
    const ids = [...selected.ids, ...selected.heals.map((heal) => heal.event)];
    return [...new Set(ids.map((id) => model.node(id)).filter(Boolean))];
  }
  if (selected.kind === "agent") return [];
  return [selected];
}
