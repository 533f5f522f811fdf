"""The server of the Model Context Protocol: tools with schemas, rules as resources, over any transport of the SDK."""

from __future__ import annotations

import json
import logging
from functools import partial

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    Annotations,
    CallToolRequestParams,
    CallToolResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from mcp_types import Tool as ToolOfProtocol

from kueuecore._text import quoted
from kueuecore.agents.answering import Answering, Limits, NoAnswerError
from kueuecore.agents.rule_pages import SECTION_TEMPLATE, page_at, rule_pages
from kueuecore.agents.tools import TOOLS, Tool, tool_named
from kueuecore.agents.workers import Workers
from kueuecore.cli.state_source import StateSource
from kueuecore.version import version

__all__ = ["INSTRUCTIONS", "server_of"]

logger = logging.getLogger("kueuecore.agents")

INSTRUCTIONS = """\
Answers questions about a Kubernetes cluster with Kueue, which admits jobs by quota: it decides as Kueue does, on a
copy, and writes nothing. For "why does my job wait?" call `explain`, then `unblock` for changes that would help,
`what_if` to see who else would move, `eta` for when. `pending` finds names, `queues` gives the overview, `check` finds
mistakes in the configuration, `history` says what happened before, `compare_releases` what an upgrade of Kueue would
change. A rule such as `02 §2.2` in an answer is the resource kueuecore://rules/02/2.2: cite it. `about.command` of an
answer gives the same in a terminal. Changes are proposals for a person: you cannot apply them here."""

_MARKDOWN = "text/markdown"
_READ_ONLY = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
_Context = ServerRequestContext[object]


def server_of(source: StateSource, limits: Limits | None = None) -> Server[object]:
    """Make a server that answers questions about a state; run it with a transport of the SDK.

    Args:
        source: The state.
        limits: How much a call may take; by default those of `Limits`.
    """
    serving = _Serving(source, limits or Limits())
    return Server(
        "kueuecore",
        version=version(),
        title="kueuecore",
        description="why Kueue's workloads wait, what would admit them, and when",
        instructions=INSTRUCTIONS,
        get_tool_input_schema=serving.input_schema,
        on_list_tools=serving.list_tools,
        on_call_tool=serving.call_tool,
        on_list_resources=serving.list_resources,
        on_list_resource_templates=serving.list_templates,
        on_read_resource=serving.read_resource,
    )


class _Serving:
    """The handlers of the requests."""

    def __init__(self, source: StateSource, limits: Limits) -> None:
        self._limits = limits
        self._answering = Answering(source, limits)
        self._workers = Workers(limits.most_at_once)

    def input_schema(self, name: str) -> dict[str, object] | None:
        tool = tool_named(name)
        return None if tool is None else dict(tool.input_schema)

    async def list_tools(self, _: _Context, __: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=list(map(_described, TOOLS)))

    async def call_tool(self, _: _Context, params: CallToolRequestParams) -> CallToolResult:
        tool = tool_named(params.name)
        if tool is None:
            names = ", ".join(known.name for known in TOOLS)
            raise MCPError(INVALID_PARAMS, f"there is no tool {quoted(params.name)}; there are {names}")
        seconds = self._limits.seconds
        try:
            work = partial(self._answering.answer, tool, params.arguments or {})
            answer = await self._workers.run(work, seconds=seconds)
        except TimeoutError:
            return _refused(f"{tool.name} has no answer within {seconds:g}s, the limit of this server: {tool.too_slow}")
        except NoAnswerError as error:
            return _refused(str(error))
        document = json.dumps(answer.document, separators=(",", ":"), ensure_ascii=False)
        return CallToolResult(
            content=[
                TextContent(type="text", text="\n".join(answer.sentences), annotations=Annotations(priority=1.0)),
                # The protocol asks for it: clients that know no structured content read it here.
                TextContent(type="text", text=document, annotations=Annotations(audience=["assistant"], priority=0.5)),
            ],
            structured_content=answer.document,
        )

    async def list_resources(self, _: _Context, __: PaginatedRequestParams | None) -> ListResourcesResult:
        found = [
            Resource(
                uri=page.uri,
                name=f"rules {page.chapter}",
                title=page.title,
                description=f"rules of Kueue, chapter {page.chapter}; a section: {page.uri}/SECTION",
                mime_type=_MARKDOWN,
                size=len(page.text.encode()),
            )
            for page in rule_pages()
        ]
        return ListResourcesResult(resources=found)

    async def list_templates(self, _: _Context, __: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
        if not rule_pages():
            return ListResourceTemplatesResult(resource_templates=[])
        section = ResourceTemplate(
            uri_template=SECTION_TEMPLATE,
            name="rule",
            title="A section of the rules",
            description="the rule that an answer cites: `02 §2.2` is kueuecore://rules/02/2.2",
            mime_type=_MARKDOWN,
        )
        return ListResourceTemplatesResult(resource_templates=[section])

    async def read_resource(self, _: _Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        text = page_at(params.uri)
        if text is None:
            message = f"there is no resource {quoted(params.uri)}; a rule is at {SECTION_TEMPLATE}"
            raise MCPError(INVALID_PARAMS, message, {"uri": params.uri})
        return ReadResourceResult(contents=[TextResourceContents(uri=params.uri, text=text, mime_type=_MARKDOWN)])


def _described(tool: Tool) -> ToolOfProtocol:
    return ToolOfProtocol(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=dict(tool.input_schema),
        output_schema=dict(tool.answers),
        annotations=_READ_ONLY,
    )


def _refused(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)
