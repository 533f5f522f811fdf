"""Write the transcript in docs/agents.md: questions about examples/eta, over the protocol, and what was answered.

    python -m scripts.agents_transcript

The client is that of the SDK, and the server a process of its own, as an agent would start it.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

import anyio
from mcp import Client, StdioServerParameters, stdio_client

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "agents.md"
STATE = "examples/eta"
_BEGIN, _END = "<!-- transcript: written by scripts/agents_transcript.py -->\n", "<!-- end of transcript -->\n"
_JOB = "vision/train-73"
_QUOTA = "ClusterQueue/vision:spec.resourceGroups[0].flavors[name=main].resources[name=cpu].nominalQuota"


class Asked(NamedTuple):
    """A question of the transcript.

    Args:
        why: Why an agent asks it.
        tool: The tool.
        arguments: Its parameters.
        with_document: Show the structured answer, too?
    """

    why: str
    tool: str
    arguments: dict[str, Any]
    with_document: bool = False


INCIDENT = (
    Asked("The overview: where does work wait?", "queues", {}),
    Asked("Why does this job wait?", "explain", {"workload": _JOB}),
    Asked("What would admit it?", "unblock", {"workload": _JOB}),
    Asked("The first change, tried: who else moves?", "what_if", {"set": [f"{_QUOTA}=21"]}, with_document=True),
    Asked("And if nothing is changed, when is its turn?", "eta", {"workloads": [_JOB], "seeds": 40}),
)


async def transcript() -> str:
    """Ask the questions, and return what was asked and answered as Markdown."""
    # A slow machine plays all futures, too.
    command = ["-m", "kueuecore", "mcp", STATE, "--timeout", "10m"]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, filter(None, sys.path)))}
    server = StdioServerParameters(command=sys.executable, args=command, env=variables, cwd=ROOT)
    parts = []
    async with Client(stdio_client(server)) as client:
        for asked in INCIDENT:
            found = await client.call_tool(asked.tool, asked.arguments)
            parts.append(
                f"{asked.why}\n\n```text\n-> {asked.tool} {json.dumps(asked.arguments)}\n{_text(found)}\n```\n"
            )
            if asked.with_document:
                document = json.dumps(found.structured_content, indent=2, ensure_ascii=False)
                parts.append(f"Its structured content, whole:\n\n```json\n{document}\n```\n")
    return "\n".join(parts)


def _text(found: Any) -> str:
    return "\n".join(f"<- {line}" for line in found.content[0].text.splitlines())


def page() -> str:
    """Return docs/agents.md with a new transcript."""
    text = PAGE.read_text(encoding="utf-8")
    before, after = text.split(_BEGIN)[0], text.split(_END)[1]
    return f"{before}{_BEGIN}\n{anyio.run(transcript)}\n{_END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
