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


@pytest.fixture
def shortcuts(monkeypatch):
    """Take every shortcut of linear models, however small the problem is."""
    from temperance.models.linear import fast
    from temperance.models.linear.fast import leave_one_out
    from temperance.strategies.reference import deletions, row_basis

    monkeypatch.setattr(fast, "LARGE_PROBLEM", 0)
    monkeypatch.setattr(fast, "MANY_TRAINED", 0)
    for module in (leave_one_out, deletions, row_basis):
        monkeypatch.setattr(module, "MANY_ELEMENTS", 0)
