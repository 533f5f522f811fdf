"""A server for agents: the questions of the command as tools of the Model Context Protocol. Needs the extra `mcp`.

It only reads: nothing is written to a cluster. `kueuecore mcp` runs it, docs/agents.md describes it.
"""

from kueuecore.agents.answering import Limits
from kueuecore.agents.server import server_of
from kueuecore.agents.serving import serve_http, serve_stdio

__all__ = ["Limits", "serve_http", "serve_stdio", "server_of"]
