"""Search a configuration for workloads that loop, starve, or break what it promises: `kueuecore prove` as a function.

`prove` returns what it has found, and what it has tried.
"""

from typing import TYPE_CHECKING

from kueuecore._lazy import lazy_names

if TYPE_CHECKING:
    from kueuecore.proving.counterexample import Counterexample as Counterexample
    from kueuecore.proving.explorer import MEANINGS as MEANINGS
    from kueuecore.proving.explorer import Property as Property
    from kueuecore.proving.own_properties import OwnProperty as OwnProperty
    from kueuecore.proving.own_properties import When as When
    from kueuecore.proving.proof import Proof as Proof
    from kueuecore.proving.proof import TreeProof as TreeProof
    from kueuecore.proving.proof import properties_of as properties_of
    from kueuecore.proving.proof import prove as prove
    from kueuecore.proving.proof import severity_of as severity_of
    from kueuecore.proving.remedies import remedies_of as remedies_of
    from kueuecore.proving.saving import save as save
    from kueuecore.proving.story import story_of as story_of

__all__ = [
    "MEANINGS",
    "Counterexample",
    "OwnProperty",
    "Proof",
    "Property",
    "TreeProof",
    "When",
    "properties_of",
    "prove",
    "remedies_of",
    "save",
    "severity_of",
    "story_of",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "kueuecore.proving.counterexample": "Counterexample",
        "kueuecore.proving.explorer": "MEANINGS Property",
        "kueuecore.proving.own_properties": "OwnProperty When",
        "kueuecore.proving.proof": "Proof TreeProof properties_of prove severity_of",
        "kueuecore.proving.remedies": "remedies_of",
        "kueuecore.proving.saving": "save",
        "kueuecore.proving.story": "story_of",
    },
)
