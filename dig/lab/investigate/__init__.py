"""Investigation: local judgements, messages between neighbours, and a frontier of origins.

    world = Snapshot.read(Path("examples/flash-sale"))
    found = investigate(world, ServiceRules())
    print(found.frontier)

- `beliefs`: the values, frozen and plain JSON; the protocols `World` and `JudgingPolicy`.
- `controller`: the loop, and all its state; without I/O, clock and random numbers.
- `frontier`: the origins that no other origin explains, the ranking, and the explanatory graph.
- `investigation`: the answer as a document; stopping and going on; several runs and a majority.
- `snapshot`: a directory as a world. `importing`: such directories from files of other programs.
- `rules`: a policy of rules for services. `model_policy`: a policy that asks a language model.
- `scoring`: an answer against the truth of a snapshot.
- `investigation_lines`, `investigation_page`: an answer as text, and as a page.
- `run`: a recorded run as a world, with its own rules: the suspect `beliefs`.

All but `run`, `model_policy` and `investigation_page` import nothing of dig but errors and `_util`.
"""
