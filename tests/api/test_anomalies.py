"""The outputs in docs/anomalies.md are real."""

import re
from pathlib import Path

import pytest

from kueuecore.cli import main

DOCUMENT = (Path(__file__).parents[2] / "docs" / "anomalies.md").read_text(encoding="utf-8")
HEAD, *SECTIONS = re.split(r"^## ", DOCUMENT, flags=re.MULTILINE)
FAIR_SHARING = "fair-sharing.yaml"


def blocks(text: str, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("section", SECTIONS, ids=[section.splitlines()[0] for section in SECTIONS])
def test_an_anomaly(
    section: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (manifests,) = blocks(section, "yaml")
    (configuration,) = blocks(HEAD, "yaml")
    Path(FAIR_SHARING).write_text(configuration, encoding="utf-8")
    for console in blocks(section, "console"):
        command, _, expected = console.partition("\n")
        name = command.rpartition(" ")[2]
        replaced = re.match(r"\$ sed 's/(.*)/(.*)/' ", command)
        Path("-" if name == "-" else name).write_text(
            manifests.replace(replaced[1], replaced[2]) if replaced else manifests, encoding="utf-8"
        )
        options = ["--config", FAIR_SHARING] if "--config" in command else []
        main(["run", "-q", *options, "./-" if name == "-" else name])
        reported = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
        assert reported == expected.splitlines()
