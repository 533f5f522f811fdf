"""The normal distribution on arrays."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import numpy.typing as npt

__all__ = ["below"]

_POINTS = np.linspace(-8.0, 8.0, 1601)
_SHARES = np.array([NormalDist().cdf(point) for point in _POINTS])


def below(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the probability of a value below each score, to five digits.

    Example:
        >>> below(np.array([-1.0, 0.0, 2.0])).round(4).tolist()
        [0.1587, 0.5, 0.9772]
    """
    shares: npt.NDArray[np.float64] = np.interp(scores, _POINTS, _SHARES)
    return shares
