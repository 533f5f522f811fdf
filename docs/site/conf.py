"""Sphinx over the repository's Markdown as it stands: `make docs` writes target/docs."""

import sys
from pathlib import Path

from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent))
from front_page import front_page

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
html_search_scorer = str(Path(__file__).parent / "search.js")

# The sidebar, by subject. A page that is in none fails the build.
SIDEBAR = {
    "Start": ["What it is </README>", "start", "tour", "questions", "faq", "/examples/README"],
    "For your role": [
        "roles/on-call",
        "roles/platform",
        "roles/capacity",
        "roles/controller-author",
        "roles/researcher",
        "roles/agent-author",
    ],
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
    "Simulate and study": [
        "scenarios",
        "traces",
        "virtual-time",
        "simulate",
        "report",
        "compare",
        "sweep",
        "experiments",
        "plan",
    ],
    "Answers at the command line": [
        "cli",
        "symptoms",
        "ask-a-cluster",
        "explain",
        "history",
        "what-if",
        "unblock",
        "eta",
        "forecast",
        "forecast-history",
        "ui",
        "playground",
        "check",
        "charts-and-kustomizations",
        "test",
        "prove",
        "in-ci",
        "share-a-dump",
    ],
    "Agents": ["agents", "skills/kueuecore/SKILL"],
    "Kubernetes": [
        "run-in-a-cluster",
        "dry-run",
        "policies-and-webhooks",
        "metrics-and-visibility",
        "test-against-a-server",
        "upgrade",
        "upgrade-worlds",
        "feature-gates",
    ],
    "Rules": ["rules/README", "differences-from-kueue", "fidelity", "anomalies", "anomalies-topology"],
    "Reference": ["performance", "security", "/ARCHITECTURE", "/CONTRIBUTING", "/CHANGELOG", "sources"],
}
# Pages below a page of the sidebar.
BELOW = {"docs/rules/README": "[0-9]*", "examples/README": "*/README"}


def toctree(entries: list[str], *options: str) -> str:
    return "\n".join(["", "```{toctree}", ":hidden:", *options, "", *entries, "```", ""])


def add_to_pages(app: Sphinx, page: str, source: list[str]) -> None:
    """Add the sidebar to the page that it belongs to, and to the first page more: the Markdown has no directives."""
    if page == root_doc:
        title, _, rest = source[0].partition("\n\n")
        texts = [(app.srcdir / name).read_text("utf-8") for name in ("README.md", "docs/tour.md")]
        source[0] = f"{title}\n\n{front_page(*texts)}\n{rest}"
        source[0] += "".join(toctree(pages, f":caption: {subject}") for subject, pages in SIDEBAR.items())
    elif page in BELOW:
        source[0] += toctree([BELOW[page]], ":glob:")


def setup(app: Sphinx) -> None:
    app.connect("source-read", add_to_pages)
