"""The site: it is built without warnings, and works from files in a browser."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from browser import Visit

ROOT = Path(__file__).resolve().parents[1]


def source_of(folder):
    """Return a copy of the pages, since a build writes beside them."""
    made = shutil.ignore_patterns("_build", "api", "examples", "*.sqlite*")
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=made)
    for page in ROOT.glob("*.md"):
        shutil.copy(page, folder)
    return folder / "docs"


def build(source, builder, gallery):
    """Return what a build complains of, and where its pages are."""
    pytest.importorskip("sphinx", reason="the site is built with Sphinx, which is not installed")
    if builder == "html":
        pytest.importorskip("jupyter_server_mathjax", reason="MathJax is there after make docs")
    out = source / "_build" / builder
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", builder]
    path = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
    environment = os.environ | {"PYTHONPATH": path, "TEMPERANCE_DOCS_GALLERY": str(int(gallery))}
    done = subprocess.run(
        [*command, source, out], capture_output=True, text=True, env=environment, check=False
    )
    return (done.stderr or f"exit {done.returncode}") if done.returncode else "", out


def test_every_page_is_read_without_a_warning(tmp_path):
    complaint, _ = build(source_of(tmp_path), "dummy", gallery=False)
    assert complaint == ""


def test_every_page_has_a_place():
    """A page that no toctree names, or a name without a page, would be a warning; so is this."""
    text = (ROOT / "docs" / "index.md").read_text()
    trees = re.findall(r"^:::\{toctree\}\n(.*?)^:::$", text, re.MULTILINE | re.DOTALL)
    lines = [line for tree in trees for line in tree.splitlines() if line and line[0] != ":"]
    named = {re.sub(r".*<(.+)>", r"\1", line) for line in lines}
    pages = {page.stem for page in (ROOT / "docs").glob("*.md")} - {"index"}
    assert named == pages | {"api", "examples/index"}


def test_every_public_name_is_in_the_reference():
    from temperance import ESTIMATORS, __all__, messages, models, strategies, streaming

    page = (ROOT / "docs" / "api.rst").read_text()
    listed = set(re.findall(r"^   ([\w.]+)$", page, re.MULTILINE))
    warnings = {name for name in vars(messages) if name.endswith("Warning")}
    public = {*__all__, *ESTIMATORS, *models.__all__, *models.LAZY, *strategies.__all__, *warnings}
    public |= set(streaming.__all__)
    constants = {"models", "strategies", *(name for name in public if name.isupper())}
    assert public - constants - listed == set()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    complaint, out = build(source_of(tmp_path_factory.mktemp("site")), "html", gallery=True)
    assert complaint == ""
    return out


@pytest.fixture
def visit(browser, site):
    opened = []

    def open_at(page, width=1200, scheme="light"):
        opened.append(Visit(browser, site / page, width=width))
        opened[-1].page.emulate_media(color_scheme=scheme)
        return opened[-1]

    yield open_at
    for each in opened:
        each.page.emulate_media(color_scheme="null")
        each.close()


@pytest.mark.slow
@pytest.mark.parametrize("width", [1200, 375])
def test_pages_open_quietly_and_fit(browser, site, width):
    pages = [
        *site.glob("*.html"),
        *site.glob("examples/*.html"),
        *site.glob("api/*calibrate*.html"),
    ]
    assert len(pages) > 35
    wide = []
    for page in pages:
        seen = Visit(browser, page, width=width)
        seen.page.wait_for_function("!document.querySelector('.math') || window.MathJax?.isReady")
        if seen.page.evaluate("document.documentElement.scrollWidth") > width:
            wide.append(page.name)
        assert seen.said == [], page.name
        assert [url for url in seen.asked if not url.startswith(("file:", "data:"))] == [], (
            page.name
        )
        seen.close()
    assert wide == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("calibrate", "temperance.calibrate.html"),
        ("Gruenwald", "rates.html"),
        ("Lyddon-Holmes-Walker", "rates.html"),
        ("Syring-Martin", "rates.html"),
        ("Miller-Dunson", "rates.html"),
        ("Fasiolo", "rates.html"),
        ("median regression", "losses.html"),
        ("quantile regression", "losses.html"),
    ],
)
def test_search_finds_functions_and_authors(visit, words, page):
    seen = visit("search.html")
    seen.page.goto(f"{seen.own}?q={words}")
    seen.page.wait_for_selector("#search-results li a", timeout=20_000)
    found = seen.page.eval_on_selector_all("#search-results li a", "all => all.map(e => e.href)")
    assert any(page in each for each in found)
    assert seen.said == []


@pytest.mark.slow
@pytest.mark.parametrize("page", ["index.html", "api/temperance.models.GaussianLinear.html"])
def test_formulas_are_set(visit, page):
    seen = visit(page)
    seen.page.wait_for_selector(".math .MathJax", timeout=20_000)
    assert "\\theta" not in seen.page.locator("article").inner_text()
    assert seen.said == []


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_follow_the_reader(visit, scheme):
    seen = visit("index.html", scheme=scheme)
    colour = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (max(map(int, re.findall(r"\d+", colour)[:3])) > 128) == (scheme == "light")
