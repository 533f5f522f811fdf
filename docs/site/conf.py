"""Sphinx over the repository's Markdown as it stands: `make docs` writes target/docs."""

from sphinx.application import Sphinx

project = "kueuecore"
author = "The kueuecore authors"
html_show_copyright = False
extensions = ["myst_parser"]
root_doc = "docs/index"
# The repository is the source, so links between docs/, examples/ and the README hold as they do in a checkout.
include_patterns = ["*.md", "docs/**.md", "examples/**.md"]
exclude_patterns = ["target", ".*", "rust", "fuzz", "tests", "benches", "python", "dist"]

myst_heading_anchors = 6
smartquotes = False  # `--` stays an option, as it does on GitHub

html_theme = "furo"
html_title = "kueuecore"
html_copy_source = False
html_extra_path = ["index.html"]
html_show_sphinx = False

# The sidebar, by subject. A page that is in none fails the build.
SIDEBAR = {
    "Start": ["What it is </README>", "start", "tour", "questions", "/examples/README"],
    "Embed": [
        "api",
        "embed-in-a-controller",
        "admission-checks",
        "topology",
        "jobs",
        "webhooks",
        "multikueue",
        "multikueue-policies",
        "arrays",
        "invariants",
    ],
    "Simulate and study": ["scenarios", "traces", "virtual-time", "simulate", "report", "compare", "sweep", "plan"],
    "Answers at the command line": [
        "cli",
        "symptoms",
        "explain",
        "history",
        "what-if",
        "unblock",
        "eta",
        "ui",
        "check",
        "charts-and-kustomizations",
        "test",
        "share-a-dump",
    ],
    "Agents": ["agents", "skills/kueuecore/SKILL"],
    "Kubernetes": ["run-in-a-cluster", "test-against-a-server", "upgrade", "upgrade-worlds", "feature-gates"],
    "Rules": ["rules/README", "differences-from-kueue", "fidelity", "anomalies", "anomalies-topology"],
    "Reference": ["performance", "security", "/ARCHITECTURE", "/CONTRIBUTING", "/CHANGELOG", "sources"],
}
# Pages below a page of the sidebar.
BELOW = {"docs/rules/README": "[0-9]*", "examples/README": "*/README"}


def toctree(entries: list[str], *options: str) -> str:
    return "\n".join(["", "```{toctree}", ":hidden:", *options, "", *entries, "```", ""])


def add_sidebar(app: Sphinx, page: str, source: list[str]) -> None:
    """Append the sidebar to the page that it belongs to: the Markdown itself stays free of directives."""
    if page == root_doc:
        source[0] += "".join(toctree(pages, f":caption: {subject}") for subject, pages in SIDEBAR.items())
    elif page in BELOW:
        source[0] += toctree([BELOW[page]], ":glob:")


def setup(app: Sphinx) -> None:
    app.connect("source-read", add_sidebar)
