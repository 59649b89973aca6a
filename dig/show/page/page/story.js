// The story of one event.

/** All that happened to an event, in order; what agents did with it is on its edges. */
export function story(event) {
  const seen = event.seen.flatMap(({ activation, fate, to }) => {
    const { t, us, end } = activation;
    return [
      { t, us, what: "start", activation },
      ...(end ? [{ ...end, what: "end", activation, fate, to }] : []),
    ];
  });
  return [...event.told, ...seen].sort((a, b) => a.t - b.t);
}
