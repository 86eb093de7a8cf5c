/** An agent: the client of the Model Context Protocol's SDK, which starts the server `mcp`. */

// @ts-types="@modelcontextprotocol/sdk/client/index"
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
// @ts-types="@modelcontextprotocol/sdk/client/stdio"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import assert from "node:assert/strict";

/** The result of a tool: the text, and its value if it is JSON. */
interface ToolResult {
  is_error: boolean;
  text: string;
  // deno-lint-ignore no-explicit-any
  value: any;
}

/** A connected agent. */
export interface Agent {
  client: Client;
  call(name: string, input?: Record<string, unknown>): Promise<ToolResult>;
  /** Closes the input of the server, and waits for its end. */
  close(): Promise<void>;
}

/** The command that starts a server. */
interface ServerCommand {
  command: string;
  args: string[];
  env: Record<string, string>;
  cwd?: string;
}

/** Connects an agent to a new server. Its standard error is that of the tests. */
export async function connectAgent(command: ServerCommand): Promise<Agent> {
  // The server gets few variables of this process, but needs its packages.
  const cache = Deno.env.get("DENO_DIR");
  const env = { ...cache && { DENO_DIR: cache }, ...command.env };
  const transport = new StdioClientTransport({ ...command, env });
  const client = new Client({ name: "test", version: "1" });
  // Also called for a line on standard output that is no message.
  const errors: Error[] = [];
  client.onerror = (error) => errors.push(error);
  await client.connect(transport);
  return {
    client,
    call: async (name, input = {}) => {
      const { content, isError } = await client.callTool({ name, arguments: input });
      const [{ text }] = content as [{ text: string }];
      return {
        is_error: isError === true,
        text,
        value: /^[{[]/.test(text) ? JSON.parse(text) : null,
      };
    },
    close: async () => {
      await client.close();
      assert.deepEqual(errors, []);
    },
  };
}
