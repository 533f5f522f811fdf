"""Random histories with faults, and the engine move by move against the reference: how this repository tests itself.

No part of the product imports it, and the wheel leaves it out.
"""
