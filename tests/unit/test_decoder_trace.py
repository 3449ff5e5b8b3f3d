"""Tokens, patches and the decoder by hand: what cases and checks leave open."""

from __future__ import annotations

import labcore
import numpy as np

EYE = np.eye(2)
WEIGHTS = dict.fromkeys(("Wq", "Wk", "Wv", "W_up", "W_down", "unembed"), EYE)


def test_a_gate_makes_the_feed_forward_half_a_product():
    x = [[3.0, 1.0]]
    plain = labcore.decoder_trace(WEIGHTS, x)
    gated = labcore.decoder_trace({**WEIGHTS, "W_gate": EYE}, x)
    assert plain.mlp.tolist() == np.maximum(plain.norm2, 0.0).tolist()
    want = labcore.silu(gated.norm2) * gated.norm2
    assert np.array_equal(gated.mlp, want)


def test_a_batch_of_texts_has_its_axis_in_front():
    x = np.random.default_rng(0).normal(size=(3, 4, 2))
    together = labcore.decoder_trace(WEIGHTS, x)
    alone = labcore.decoder_trace(WEIGHTS, x[1])
    assert together.weights.shape == (3, 1, 4, 4)
    np.testing.assert_allclose(together.logits[1], alone.logits, rtol=1e-13)


def test_the_trace_agrees_with_the_operations_it_is_made_of():
    x = np.random.default_rng(1).normal(size=(3, 2))
    t = labcore.decoder_trace(WEIGHTS, x)
    read = labcore.causal_attention(t.q, t.k, t.v)
    np.testing.assert_allclose(t.read, read, rtol=1e-12)


def test_the_row_of_an_embedding_is_a_copy():
    table = np.ones((2, 2))
    labcore.embedding(table, [0])[0, 0] = 5.0
    assert table.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_one_token_is_one_row():
    assert labcore.embedding([[1.0], [2.0]], 1).tolist() == [2.0]


def test_a_patch_of_one_pixel_lists_the_channels_of_each():
    image = np.arange(8.0).reshape(2, 2, 2)
    want = [[0.0, 4.0], [1.0, 5.0], [2.0, 6.0], [3.0, 7.0]]
    assert labcore.patchify(image, patch=1).tolist() == want
