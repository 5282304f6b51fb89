"""Programs over batches: 10,000 paths with their Greeks, an Asian option, and ADBench's bundle adjustment and mixtures.

Values and derivatives are held to those by hand (by_hand.py) with ADBench's rule, before anything is timed.
"""

import numpy as np
import pytest
from batches import BATCHES, NoDataError
from by_hand import BY_HAND

BOUND = 1e-8  # of |x - y| / max(1, |x| + |y|)


def assert_equal(found, expected, what):
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape, what
    off = np.abs(found - expected) / np.maximum(1.0, np.abs(found) + np.abs(expected))
    assert off.max() < BOUND, f"{what}: off by {off.max():.2g}"


def check(mapper, batch, result):
    values, derivatives = mapper.shown(batch, result)
    expected_values, expected = BY_HAND[batch.name](batch)()
    assert_equal(derivatives, expected, f"{mapper.name}: derivatives")
    if expected_values is not None:
        assert_equal(values, expected_values, f"{mapper.name}: values")


@pytest.mark.parametrize("name", BATCHES)
def test_batch(replay, mapper, benchmark, name, size, adbench):
    try:
        batch = BATCHES[name](size, adbench)
    except NoDataError as error:
        pytest.skip(str(error))
    info = {"lanes": batch.lanes, "unit": batch.unit}
    replay("batch", name, mapper.name, lambda: mapper.ready(batch), lambda found: check(mapper, batch, found), **info)
    if (count := mapper.instructions(batch)) is not None:
        benchmark.extra_info["instructions"] = count
