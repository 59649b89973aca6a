"""Tasks for a team, simulated agents, and single runs.

- `task`: the protocol of a task. `catalogue`: tasks by name. `user_objects`: objects of the user.
- `count_frequency`, `newsgroups`: counting the values of an array, and the topics of posts, with
  tools and scorer. `frequency`: their common base. `newsgroups_posts`: the posts.
- `accounting`: which parts of a task the events of a run are about. `number_ranges`:
  such parts. `milestones`: how far a run came. `miscounts`: the agents behind a wrong answer.
- `simulated`: agents that work in virtual time, without a language model. `general_agent`: the
  prompt of agents with one.
- `run`: one run.
"""
