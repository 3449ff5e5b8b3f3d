"""The formulas of RoPE. Queries and keys are columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ops.rope import rope, rope_frequencies, rope_rotation
from ._formula import Inputs, formula

CHAPTER = "rope"
TURN = {
    "R()": "R_{#1}",
    "base": r"\mathrm{base}",
    "turned": r"\query{q'}",
    "half": r"\mathrm{half}",
    "interleaved": r"\mathrm{interleaved}",
}


def turn(angle: float) -> Any:
    """The rotation as a complex number that multiplies both unit vectors."""
    first, second = (np.exp(1j * angle) * unit for unit in (1, 1j))
    return np.array([[first.real, second.real], [first.imag, second.imag]])


def a_plane(rng: np.random.Generator) -> Inputs:
    """A query and a key in one plane, their positions, and how fast it turns."""
    i, j = rng.choice(9, size=2, replace=False)
    return {
        "q": rng.normal(size=(2, 1)),
        "k": rng.normal(size=(2, 1)),
        "i": int(i) + 1,
        "j": int(j) + 1,
        "omega": rng.uniform(0.2, 0.6),
        "theta": rng.uniform(0.3, 1.2),
    }


def a_head(rng: np.random.Generator) -> Inputs:
    """A query of four planes at a position, and a base that is not the usual one."""
    base, d, p = rng.uniform(20, 60), 8, int(rng.integers(3, 9))
    return {
        "q": rng.normal(size=d),
        "d": d,
        "base": base,
        "p": p,
        "omega": base ** (-np.arange(0, d, 2) / d),
        "i": 2,
    }


def two_layouts(rng: np.random.Generator) -> Inputs:
    """One query, its turn in either layout, and the order that leads to the other."""
    d, p = 6, int(rng.integers(3, 9))
    order = [*range(0, d, 2), *range(1, d, 2)]
    return {
        "q": rng.normal(size=d),
        "P": np.eye(d)[order],
        "order": order,
        "p": p,
        "half": lambda x: rope(x, p, layout="half"),
        "interleaved": lambda x: rope(x, p),
    }


def in_a_head(q: Any, k: Any, i: int, j: int, omega: float) -> Any:
    """The score of a head that holds something in its second plane alone."""
    query, key = (np.concatenate([[0.0, 0.0], x[:, 0]]) for x in (q, k))
    base = omega**-2  # so that the second of two planes turns by omega
    return rope(query, i, base=base) @ rope(key, j, base=base)


formula(
    "rotation",
    "matrix([[cos(theta), -sin(theta)], [sin(theta), cos(theta)]])",
    defines="R(theta)",
    symbols=TURN,
    chapter=CHAPTER,
    draw=a_plane,
    function=lambda theta: rope_rotation(theta),
    operations=("rope_rotation",),
    checks=("rope_rotation_sign",),
)
formula(
    "scores_see_the_offset",
    "(R(i * omega) @ q).T @ (R(j * omega) @ k)",
    "q.T @ R((j - i) * omega) @ k",
    symbols=TURN,
    functions={"R": rope_rotation},
    chapter=CHAPTER,
    draw=a_plane,
    function=in_a_head,
    operations=("rope_rotation", "rope"),
    checks=(
        "rope_relative_identity",
        "rope_joint_shift",
        "rope_relative_scores",
        "rope_attention_shift",
    ),
)
formula(
    "speed_of_a_plane",
    "base ** (-(2 * i) / d)",
    defines="omega[i]",
    symbols=TURN,
    chapter=CHAPTER,
    draw=a_head,
    function=lambda d, base, i: rope_frequencies(d, base)[i],
    operations=("rope_frequencies",),
    checks=("rope_frequency_exponent", "rope_frequency_base"),
)
formula(
    "turn_of_a_plane",
    "R(p * omega[i]) @ matrix([[q[2 * i]], [q[2 * i + 1]]])",
    defines="matrix([[turned[2 * i]], [turned[2 * i + 1]]])",
    symbols=TURN,
    functions={"R": turn},
    chapter=CHAPTER,
    draw=a_head,
    function=lambda q, p, base, i: rope(q, p, base=base)[2 * i : 2 * i + 2],
    operations=("rope",),
    checks=("rope_worked", "rope_turns_each_plane"),
)
formula(
    "two_layouts",
    "half(P @ q)",
    "P @ interleaved(q)",
    symbols=TURN,
    chapter=CHAPTER,
    draw=two_layouts,
    function=lambda q, p, order: rope(q, p)[order],
    operations=("rope",),
    checks=("rope_layouts",),
)
formula(
    "mirror",
    "R(-theta)",
    "matrix([[1, 0], [0, -1]]) @ R(theta) @ matrix([[1, 0], [0, -1]])",
    symbols=TURN,
    functions={"R": turn},
    chapter=CHAPTER,
    draw=a_plane,
    function=lambda theta: rope(np.eye(2), [-theta, -theta]).T,
    operations=("rope",),
    checks=("rope_mirror",),
)
