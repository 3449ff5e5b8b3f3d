"""Quantization and byte-pair merges: what cases and checks leave open."""

from __future__ import annotations

import labcore
import numpy as np
import pytest


def test_codes_are_integers():
    assert labcore.quantize_symmetric([1.0], 1.0).dtype == np.int64
    narrow = np.array([1.0], np.float32)
    assert labcore.quantize_symmetric(narrow, 1.0).dtype == np.int64


def test_a_range_may_be_lopsided():
    got = labcore.quantize_symmetric([-9.0, 9.0], 1.0, qmin=0, qmax=3)
    assert got.tolist() == [0, 3]


def test_the_scale_of_a_row_of_zeros_is_one():
    got = labcore.absmax_scale([[0.0, 0.0], [0.0, -254.0]], axis=-1)
    assert got.tolist() == [[1.0], [2.0]]


def test_a_number_is_a_tensor_without_axes():
    assert labcore.tensor_bytes((), 16) == 2
    assert labcore.tensor_bytes((0, 5), 16) == 0


def test_characters_are_code_points():
    text = "e" + chr(0x301) + chr(0x1F600)
    assert labcore.bpe_encode(text, []) == list(text)


def test_rules_may_be_lists():
    assert labcore.bpe_encode("ab", [["a", "b"]]) == ["ab"]


def test_training_on_bytes_learns_bytes():
    assert labcore.bpe_train(b"abab", 1) == [(b"a", b"b")]
    assert labcore.bpe_train("", 3) == []


def test_what_was_learnt_can_be_encoded_with():
    text = "low lower lowest"
    merges = labcore.bpe_train(text, 4)
    assert labcore.bpe_encode(text, merges)[0] == "low"


@pytest.mark.parametrize(
    "tokens, text",
    [([], ""), (["a", "b"], "ab"), ([b"\xff"], chr(0xFFFD)), ([b"\xc3"], chr(0xFFFD))],
)
def test_bytes_that_are_no_text_become_the_replacement_character(tokens, text):
    assert labcore.bpe_decode(tokens) == text
