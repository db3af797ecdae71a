"""Settings of all tests."""

import os

import pytest
from browser import launched

# Most of the time of tests in JAX goes into compiling small programs: compile them plainly.
os.environ.setdefault(
    "XLA_FLAGS", "--xla_llvm_disable_expensive_passes=true --xla_backend_optimization_level=0"
)


@pytest.fixture(scope="session")
def browser():
    with launched() as windows:
        yield windows
