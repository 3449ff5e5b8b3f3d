"""The chapters of the part on worked examples; their checks stand with their topics."""

from ._check import Chapter

PART = "Worked examples"
tokens = Chapter("tokens-shapes-decoder", "Tokens, shapes and a decoder by hand", PART)
sampling = Chapter("sampling-and-search", "Sampling and search", PART)
training = Chapter(
    "losses-gradients-optimizers", "Losses, gradients and optimizers", PART
)
preferences = Chapter("preferences", "Preferences", PART)
retrieval = Chapter("retrieval", "Retrieval", PART)
serving = Chapter(
    "memory-quantization-serving", "Memory, quantization and serving", PART
)
state = Chapter("streams-and-state", "Streams and state", PART)
evaluation = Chapter("evaluation", "Evaluation", PART)
