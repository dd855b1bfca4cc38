"""Matching by matrix scaling: how many references taken at each place were given back at each place."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_TINY = 1e-12
_CLOSE = 1e-4


def scaled(weights: Floats, rows: Floats, columns: Floats, rounds: int, exact: bool = False) -> Floats:
    """Return matrices in proportion to `weights` whose sums are `rows` and `columns`.

    Iterative proportional fitting (Deming and Stephan 1940; Sinkhorn 1967): of all matrices with these sums the
    one nearest to the weights. Shapes (..., R, C), (..., R), (..., C); the sums of rows and columns must
    agree. `exact`: stop once the result has them.
    """
    result = weights
    for _ in range(rounds):
        result = result * (rows / np.maximum(result.sum(axis=-1), _TINY))[..., :, None]
        if exact and float(np.abs(result.sum(axis=-2) - columns).max()) < _CLOSE:
            break
        result = result * (columns / np.maximum(result.sum(axis=-2), _TINY))[..., None, :]
    return result
