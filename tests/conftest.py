"""Settings of all tests."""

import os

import pytest
from browser import launched

# Most of the time of tests in JAX goes into compiling small programs: compile them plainly.
os.environ.setdefault(
    "XLA_FLAGS", "--xla_llvm_disable_expensive_passes=true --xla_backend_optimization_level=0"
)
# Nothing is left in the cache folder of who runs the tests.
os.environ.setdefault("TEMPERANCE_CACHE", "off")


# Examples whose programs take long to compile, and which other tests run in small.
COMPILED = ("gibbs_model.GibbsModel", "numpyro_model.NumPyroModel")


def pytest_collection_modifyitems(items):
    for item in items:
        if isinstance(item, pytest.DoctestItem) and item.name.endswith(COMPILED):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def browser():
    with launched() as windows:
        yield windows
