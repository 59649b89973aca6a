"""The page: a run as an interactive picture, in a file or live.

`page/` is the page itself: plain JavaScript modules, a style sheet and a template. `rows`: records
as rows of the page; `about`: the head above them; `html_page`: the modules as one script, and the
page around its data, or around the address of a live source; `writing`: a report.

The page is the same for both. It is given a *head* (see `about`) and *rows* (see `rows`) in order:

- in a report they stand in the page, compressed;
- live, the page opens an event stream at its source. A message `head` is a head, a message without
  a name a JSON list of rows, `end` says that nothing more comes. What was seen before is ignored.
"""
