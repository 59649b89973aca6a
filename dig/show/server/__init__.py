"""`digmon view`: a local server that shows runs, and follows those that are going on.

`shelf`: which runs there are; `following`: a trace as it grows; `guard`: who may ask; `routes`:
what there is to ask for, and server-sent events; `server`: the sockets, and a browser.

It reads, and only for whoever knows the address that it printed: it listens on 127.0.0.1, each
path begins with a random token, and `Host` and `Origin` must be its own. It has no way to write,
and no path of a request becomes a path of a file.
"""
