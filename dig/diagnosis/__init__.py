"""Why a run failed, and what would have helped.

    found = diagnose(Path("runs/ID"), trying=Trying())
    print(found.answer, found.fix)

- `concepts`: the words of a diagnosis. `document`: a diagnosis as JSON.
- `goal`: when a finished run is good; `progress`: how far it came; `failures`: by what it is not
  good. `learning`: what good runs of a team raise.
- `attempts`: the parts of a run that try to solve a problem by one plan. `case`: a run that is
  explained. `suspects`: what names candidates.
- `interventions`: what can be changed in a run. `trials`: replays with a change and without it,
  and the verdict. `experiments`: their order. `diagnosing`: all of it. `telling`: it in lines.
- `causes`: the graph of causes, from a root cause to the failure.
- `components`: which agents, activations and events a component consists of.
"""
