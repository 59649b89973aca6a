"""Signs: odd acts of agents, by the records of a run alone.

- `table`: the table of signs, and what is learned from good runs. `analysis`: a run with what its
  records tell.
- `traits`: what agents did, in respects in which they can be compared. `peers`: what peers hardly
  ever do: the general sign, which names no way of going wrong.
- `delivery`, `activations`, `contents`: signs that name one.
"""
