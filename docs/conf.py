"""Settings of the site: ``make docs`` builds it into ``docs/_build/html``, without a network."""

import importlib.metadata
import importlib.util
import os
import re
import shutil
from pathlib import Path

import numpydoc.docscrape_sphinx
from jinja2.sandbox import SandboxedEnvironment

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("TEMPERANCE_CACHE", "off")  # a build leaves nothing in the user's cache

project = "temperance"
author = "The temperance developers"
copyright = author  # noqa: A001
release = importlib.metadata.version("temperance")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates", "gallery", "approximations.py", "reproduction/results"]

suppress_warnings = ["misc.highlighting_failure"]  # Pygments knows no csv

# numpydoc compiles its template for every docstring, which takes a fifth of a build; here once.
templates: dict[type, SandboxedEnvironment] = {}
numpydoc.docscrape_sphinx.SandboxedEnvironment = lambda loader: templates.setdefault(
    type(loader), SandboxedEnvironment(loader=loader)
)

# Markdown as GitHub shows it.
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4

autosummary_generate = True
autodoc_typehints = "none"  # docstrings name the types
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "filename_pattern": r"plot_.*\.py",
    "ignore_pattern": r"heart_draws\.py",  # it runs Stan, once
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "write_computation_times": False,
    "min_reported_time": 1e9,
    "within_subsection_order": "FileNameSortKey",
    "thumbnail_size": (640, 300),
    "abort_on_example_error": True,
    # A part of the site can be built without running the examples.
    "plot_gallery": os.environ.get("TEMPERANCE_DOCS_GALLERY", "1") == "1",
}

html_theme = "furo"
html_title = "temperance"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["explorer.html"]
html_copy_source = False
html_show_sphinx = False
html_show_search_summary = False  # summaries are fetched, which browsers refuse to pages from files

# MathJax comes with jupyter-server-mathjax and is copied beside the pages.
MATHJAX = "mathjax/MathJax.js?config=TeX-AMS-MML_HTMLorMML-full"
mathjax_path = MATHJAX
mathjax_options = {"integrity": ""}
mathjax2_config = {
    "jax": ["input/TeX", "output/HTML-CSS"],
    "HTML-CSS": {
        "webFont": "STIX-Web",
        "availableFonts": [],
        "preferredFont": "",
        "imageFont": None,
        "linebreaks": {"automatic": True},
        # Its own, about:blank, is refused to pages from files, and the console says so.
        "styles": {"@font-face": {"font-family": "MathJax_Blank", "src": "local('none')"}},
    },
    "tex2jax": {
        "inlineMath": [["\\(", "\\)"]],
        "displayMath": [["\\[", "\\]"]],
        "ignoreClass": ".*",
        "processClass": "math|mathjax_process",
    },
    "menuSettings": {"collapsible": False, "explorer": False},
    "showMathMenu": False,
    "messageStyle": "none",
}
myst_update_mathjax = False

ROOT = Path(__file__).resolve().parents[1]
OUTSIDE = re.compile(r"(?<!!)\[([^\]]*)\]\(\.\./[^)\s]*\)")
# Pages of the folder above that are part of the site, and where.
ABOVE = {"README": "index", "CONTRIBUTING": "contributing", "CHANGELOG": "changelog"}


def keep_inside(app, name, source):
    """Read pages of the folder above; link to examples as pages, show other code as words."""
    text = source[0]
    for above, page in ABOVE.items():
        if name == page != "index":
            text = re.sub(r"\]\((?!https?:|#)", "](../", (ROOT / f"{above}.md").read_text())
        text = text.replace(f"](../{above}.md", f"]({page}.md")
    text = re.sub(r"\]\(gallery/(plot_\w+)\.py\)", r"](examples/\1.rst)", text)
    source[0] = OUTSIDE.sub(r"\1", text.replace("](../docs/", "]("))


def copy_mathjax(app, error):
    """Copy MathJax without what no page asks for."""
    if error or app.builder.format != "html":
        return
    package = importlib.util.find_spec("jupyter_server_mathjax").origin
    source = Path(package).parent / "static"
    unused = shutil.ignore_patterns("localization", "a11y", "SVG", "mhchem*")
    shutil.copytree(source, app.outdir / "_static" / "mathjax", ignore=unused, dirs_exist_ok=True)


def skip(app, what, name, member, skipped, options):
    """Leave out what a class inherits from other libraries."""
    module = getattr(getattr(member, "fget", member), "__module__", None)
    foreign = module is not None and not str(module).startswith("temperance")
    return True if foreign or hasattr(member, "__objclass__") else None


def setup(app):
    """Connect what is written above."""
    app.connect("source-read", keep_inside)
    app.connect("autodoc-skip-member", skip)
    app.connect("build-finished", copy_mathjax)
