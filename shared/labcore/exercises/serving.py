"""Exercises on memory, quantization and serving."""

from __future__ import annotations

from .. import lab
from ..examples import EXAMPLES
from ..identities import FAULTS
from ..ops.compress import quantize_symmetric
from ..ops.mla import mla_cache_elements
from ..ops.serving import kv_cache_bytes, mm1
from . import exercise


@exercise(
    "serving/groups",
    hint="Numbers a token and layer: rank plus rotary width; and two for each head.",
    because="{latent} numbers against {shared} for one shared head.",
    tells=lambda rank, rotary, head: {"latent": rank + rotary, "shared": 2 * head},
    rank=384,
    rotary=32,
    head=64,
)
def _(rank: int, rotary: int, head: int) -> float:
    one = kv_cache_bytes(layers=1, kv_heads=1, head_dim=head, bytes_per_element=1)
    return mla_cache_elements(rank, rotary) / one


@exercise(
    "serving/halves",
    hint="Every one of them lies in the middle. Which of its neighbours is even?",
    because="Rounded upward their sum would have grown; to even it is kept.",
    x=[0.5, 1.5, 2.5, 3.5],
    scale=1.0,
)
def _(x: list[float], scale: float) -> list[int]:
    codes: list[int] = quantize_symmetric(x, scale).tolist()
    return codes


@exercise(
    "serving/faster",
    hint="The wait in line is load / (service rate - arrival rate). Compute it twice.",
    because="A shorter service, and the load is {lower} in place of {load}.",
    tells=lambda load, speed: {"lower": load / speed},
    load=0.9,
    speed=2,
)
def _(load: float, speed: float) -> float:
    return mm1(load, 1.0).Wq / mm1(load, speed).Wq


@exercise(
    "serving/blind",
    hint="Run EXAMPLES['X10'].output() inside lab.broken(name), and compare.",
    because="None of its inputs is a half, and the one that rounds up is cut off.",
)
def _() -> set[str]:
    x10 = EXAMPLES["X10"]
    right, blind = x10.output(), set()
    for fault in FAULTS.values():
        if fault.operation == "quantize_symmetric":
            with lab.broken(fault.id):
                if x10.output() == right:
                    blind.add(fault.id)
    return blind
