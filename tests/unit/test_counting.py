"""Numbers that count what is done with them."""

from __future__ import annotations

import labcore
import numpy as np
import pytest
from labcore import lab
from labcore.counting import Counted, counted, multiplications


def some_of_each(a, b):
    return abs(a - b) / (b + 1) * 2 + 1


def test_each_kind_of_work_is_counted_by_itself():
    tally = counted(some_of_each, np.arange(3.0), np.arange(1.0, 4.0))
    assert tally == {
        "multiplications": 3,
        "divisions": 3,
        "additions": 6,
        "subtractions": 3,
        "absolute values": 3,
    }


def test_a_second_count_begins_at_nothing():
    for _ in range(2):
        assert multiplications("linear", np.ones((2, 3)), np.ones((3, 5))) == 30
    assert Counted.tally == {}


def test_what_computes_otherwise_on_counted_numbers_is_refused():
    def by_type(a):
        return a * 2 if a.dtype == object else a * 3

    with pytest.raises(AssertionError, match="by_type gives other numbers"):
        counted(by_type, np.ones(2))


def test_a_plain_number_counts_on_either_side():
    assert (2 * Counted(3) + 1).x == (1 + Counted(3) * 2).x == 7
    Counted.tally.clear()


def test_another_version_of_an_operation_is_not_counted_as_the_right_one():
    arrays = np.ones((2, 3)), np.ones((3, 5))
    with lab.broken(linear=lambda x, w: 2 * labcore.linear(x, w)):
        with pytest.raises(AssertionError, match="other numbers"):
            multiplications("linear", *arrays)
