"""One profile for all property tests: the same examples in every run."""

from hypothesis import settings

settings.register_profile("lab", deadline=None, derandomize=True, database=None)
settings.load_profile("lab")
