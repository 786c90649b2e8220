"""The papers' tables beside what the simulator says of the same steps.

``python -m paper`` writes docs/paper.md (scripts/paper). `constants` are the
devices and networks, `settings` what the papers don't print, `models` the
training steps by their shapes, `simulate` compiles one for a cluster and asks
whale-sim, `rows` is the table, `page` writes it down.
"""
