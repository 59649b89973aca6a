"""Signs: odd acts of agents, by the records of a run alone.

- `table`: the table of signs, and what is learned from good runs. `analysis`: a run with what its
  records tell.
- `payload_facts`: facts about payloads, each of which is read once.
- `traits`: what agents did, as answers to questions about any agent, so that agents can be
  compared.
- `peers`: the general signs: an agent does what its peers hardly ever do. They do not say what went
  wrong.
- `delivery`, `activations`, `contents`: signs that say what went wrong.
"""
