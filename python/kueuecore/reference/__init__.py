"""How Kueue decides, in plain Python: the readable statement of the rules, and what the engine is compared with.

Everything is worked out anew from the objects at each step, in the dull way: to try something, the state is copied. It
shares no code with the engine, and does not load the extension. Manifests have to be valid; nothing is checked.
"""
