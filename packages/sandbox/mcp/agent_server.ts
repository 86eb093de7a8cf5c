/**
 * The server of `mcp`: the tools, over standard input and output. Only messages of the protocol are
 * written to standard output.
 *
 * The package of the SDK names its types in a form that only TypeScript's own compiler resolves, so
 * `@ts-types` names them for Deno.
 */

// @ts-types="@modelcontextprotocol/sdk/server/index"
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
// @ts-types="@modelcontextprotocol/sdk/server/stdio"
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
// @ts-types="@modelcontextprotocol/sdk/types"
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import process from "node:process";
import * as z from "zod";
import { UsageError } from "../command.ts";
import { PACKAGE_NAME, PACKAGE_VERSION } from "../package_name.ts";
import { TOOLS } from "./tools.ts";
import type { AgentSandbox, Tool } from "./tool.ts";
import { resultOf } from "./tool_result.ts";

const INSTRUCTIONS = `Tools for a payments API in its sandbox: no real money moves. \
Amounts are integers in minor units (1999 is 19.99 EUR). Fields, statuses and errors are those of \
the HTTP API, so code that you write sends and gets the same ones. get_sandbox says where it is. \
A failed call returns {"status", "error": {"code", "message", "param", …}}; explain_error explains \
a code. To see webhooks, call create_inbox before you make payments, and then read_inbox.`;

/**
 * Serves until the client closes standard input, or the stop.
 * @param stop ends the server
 */
export async function serveAgent(sandbox: AgentSandbox, stop: AbortSignal): Promise<void> {
  const info = { name: PACKAGE_NAME, title: "Payments sandbox", version: PACKAGE_VERSION };
  // The SDK's McpServer would check the arguments itself, and refuse them in a form of its own.
  const server = new Server(info, { instructions: INSTRUCTIONS, capabilities: { tools: {} } });
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: TOOLS.map(describe) }));
  server.setRequestHandler(
    CallToolRequestSchema,
    ({ params: { name, arguments: given = {} } }, { signal }) =>
      resultOf(() => {
        const tool = TOOLS.find((tool) => tool.name === name);
        if (tool === undefined) throw new UsageError(`There is no tool "${name}"`);
        return tool.run(given, { ...sandbox, signal });
      }),
  );
  const ended = new Promise<void>((resolve) => {
    // The transport does not notice the end of the input.
    process.stdin.once("end", resolve).once("close", resolve);
    stop.addEventListener("abort", () => resolve());
    server.onclose = resolve;
  });
  await server.connect(new StdioServerTransport());
  await ended;
  // Ends the calls that are under way.
  await server.close();
}

/** Returns a tool as the protocol describes it. */
function describe({ name, title, description, input, annotations }: Tool) {
  const schema = z.toJSONSchema(input, {
    target: "draft-7",
    io: "input",
    // Unknown names are refused at every depth.
    override: ({ jsonSchema }) => {
      if (jsonSchema.properties !== undefined) jsonSchema.additionalProperties = false;
    },
  });
  const inputSchema = { ...schema, type: "object" as const };
  return { name, title, description, annotations, inputSchema };
}
