"""The laboratory: code for evaluation only. In dig, only the command line imports its modules.

- `run_pair`: a run with faults and its twin, in memory. `benchmark`, `truth`: sets of faulty runs,
  what is true about them, and scores.
- `experiment`: the experiments of the paper; `compared_methods`, `judge`, `rivals`: what healing
  is compared with.
- `investigate`: investigations of foreign snapshots.
- `reference`: the importer of graphs of the paper's program.
- `cli`: the commands of all these.

Its import adds rows to tables of packages that it imports, each as the place of an object, and
loads nothing else. A table that lacks a name imports it (`dig._util.registry`).
"""

from dig._util.registry import Registry

Registry.add(
    "methods",
    redraw="dig.lab.compared_methods:draw_again",
    watchdog="dig.lab.compared_methods:speak",
    retry="dig.lab.compared_methods:ask_again",
    judge="dig.lab.compared_methods:judge",
)
Registry.add("suspects", beliefs="dig.lab.investigate.run:BELIEFS")
Registry.add("formats", **{"dig-graph": "dig.lab.reference.reference:FORMAT"})
Registry.add(
    "recorded",
    **{
        "dig.detectors.judged.Judged": "dig.lab.judge.judged:Judged",
        "dig.detectors.judged.HealAsJudged": "dig.lab.judge.judged:HealAsJudged",
        "dig.detectors.rivals.Silence": "dig.lab.rivals:Silence",
        "dig.detectors.rivals.HealByWord": "dig.lab.rivals:HealByWord",
        "dig.detectors.rivals.HealByProblem": "dig.lab.rivals:HealByProblem",
    },
)
