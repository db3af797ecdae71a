"""What a user gets: a light import, and a wheel that works with the core dependencies alone."""

import ast
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BUILD_INPUTS = ("pyproject.toml", "LICENSE", "README.md", "src")

HEAVY = ("matplotlib", "pandas", "sklearn", "jax", "scipy.stats", "joblib", "typer", "rich")

LIST_HEAVY_IMPORTS = f"""
import sys
import temperance
print(*(name for name in {HEAVY!r} if name in sys.modules))
"""

CALIBRATE_WITH_CORE_ALONE = """
import importlib.util
import sys
from pathlib import Path

import numpy as np

import temperance
from temperance import calibrate, models

package = Path(temperance.__file__).parent
assert package.is_relative_to(sys.prefix), package
assert (package / "py.typed").is_file()
for name in ("page.html", "page.css", "page.js", "drawing.js"):
    assert (package / "app" / "report" / name).is_file(), name
for name in ("matplotlib", "sklearn", "pandas", "typer"):
    assert importlib.util.find_spec(name) is None, name
try:
    temperance.GibbsRegressor
except ImportError as error:
    assert str(error) == (
        "the estimators need scikit-learn: pip install 'temperance[sklearn]'"
    ), error
else:
    raise AssertionError("the estimators came from nowhere")

rng = np.random.default_rng(0)
X = rng.normal(size=(20, 2))
y = X @ np.array([1.0, -1.0]) + rng.normal(size=20)
result = calibrate(models.GaussianLinear(noise_variance=1.0), X, y)
assert 0.0 <= result.beta <= 3.0, result.beta
assert np.isclose(result.alpha, 20 * result.beta), (result.alpha, result.beta)
"""


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command outside the source tree's reach and show its output when it fails."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        pytest.fail(f"{command[:3]} exited with {done.returncode}:\n{done.stdout}", pytrace=False)
    return done.stdout


@pytest.mark.parametrize("project", ["src/temperance_studies/pyproject.toml", "CITATION.cff"])
def test_one_version_everywhere(project):
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    lines = (ROOT / project).read_text().replace('"', "").replace(" = ", ": ").splitlines()
    assert [line for line in lines if line.startswith("version:")] == [f"version: {version}"]


def test_the_changelog_has_the_version():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"\n## [{version}]" in (ROOT / "CHANGELOG.md").read_text()


def test_import_is_light(tmp_path):
    assert run(sys.executable, "-c", LIST_HEAVY_IMPORTS, cwd=tmp_path).split() == []


def test_the_import_check_sees_a_heavy_module(tmp_path):
    """Negative control: the check above must notice a module that was imported."""
    script = "import scipy.stats\n" + LIST_HEAVY_IMPORTS
    assert "scipy.stats" in run(sys.executable, "-c", script, cwd=tmp_path).split()


def imported(code):
    """Return the modules that some code imports anywhere, by statements or by calls with names."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module
        elif isinstance(node, ast.Call) and "import" in ast.unparse(node.func):
            yield from (ast.literal_eval(each) for each in node.args if is_text(each))


def is_text(node):
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def of_the_studies(code):
    return [name for name in imported(code) if name.split(".")[0] == "temperance_studies"]


def test_the_library_imports_nothing_of_the_studies():
    files = list((ROOT / "src" / "temperance").rglob("*.py"))
    assert len(files) > 100
    assert not {each: found for each in files if (found := of_the_studies(each.read_text()))}


@pytest.mark.parametrize(
    "code",
    [
        "import numpy, temperance_studies.study",
        "def later():\n    from temperance_studies import settings",
        "if TYPE_CHECKING:\n    from temperance_studies.study.ledger import Ledger",
        "importlib.import_module('temperance_studies.thesis')",
        "__import__('temperance_studies')",
    ],
)
def test_the_scan_for_imports_sees_one(code):
    assert of_the_studies(code)


def built(tmp_path, project):
    """Build the wheel of a project from a copy of what its build needs."""
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in BUILD_INPUTS:
        source = ROOT / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(source, tree / name, ignore=ignored)
        elif source.exists():
            shutil.copy(source, tree / name)
    out = tmp_path / "dist"
    run(sys.executable, "-m", "build", "--wheel", "--outdir", out, tree / project, cwd=tmp_path)
    (wheel,) = out.glob("*-py3-none-any.whl")
    return wheel


@pytest.mark.slow
def test_the_studies_are_a_wheel_of_their_own(tmp_path):
    with zipfile.ZipFile(built(tmp_path, "src/temperance_studies")) as wheel:
        names = wheel.namelist()
        (entries,) = (name for name in names if name.endswith("entry_points.txt"))
        commands = wheel.read(entries).decode()
    assert "reproduce = temperance_studies.thesis.command:reproduce" in commands
    assert "temperance_studies/py.typed" in names
    for part in ("settings", "study", "thesis/figures"):
        assert f"temperance_studies/{part}/__init__.py" in names
    assert all(name.startswith("temperance_studies") for name in names)


@pytest.mark.slow
def test_wheel_works_with_core_dependencies_alone(tmp_path):
    wheel = built(tmp_path, ".")
    with zipfile.ZipFile(wheel) as archive:
        assert not [name for name in archive.namelist() if "studies" in name]

    run(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    binaries = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin")
    python = binaries / "python"
    quiet = ("-q", "--disable-pip-version-check")
    constraints = ROOT / "constraints.txt"
    run(python, "-m", "pip", "install", *quiet, "-c", constraints, wheel, cwd=tmp_path)
    run(python, "-I", "-c", CALIBRATE_WITH_CORE_ALONE, cwd=tmp_path)
    command = subprocess.run([binaries / "temperance"], capture_output=True, text=True)
    assert command.returncode == 2
    assert command.stderr == (
        "temperance: the command line needs typer: pip install 'temperance[cli]'\n"
    )
