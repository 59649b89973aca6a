"""`digmon view`: a local server of runs, stored or going on.

`shelf`: the available runs; `following`: a trace as it grows; `request_guard`: the check of
requests; `page_routes`: the addresses, and server-sent events; `acts`: what a person writes;
`server`: the sockets, and a browser. `page/` is the list of runs, in JavaScript.

The server answers only requests with the address that it printed: it listens on 127.0.0.1, each
path begins with a random token, and `Host` and `Origin` must be its own. It writes notes on runs
and rules of one policy file; no path of a request becomes a path of a file.
"""
