"""Random histories with faults, and comparisons of engine and reference: how this repository tests itself.

No part of the product imports it, and the wheel leaves it out.
"""
