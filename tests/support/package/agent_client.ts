/** An agent: the client of the Model Context Protocol's SDK, which starts the server `mcp`. */

// @ts-types="@modelcontextprotocol/sdk/client/index"
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
// @ts-types="@modelcontextprotocol/sdk/client/stdio"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import assert from "node:assert/strict";

/** A connected agent. */
export type Agent = Awaited<ReturnType<typeof connectAgent>>;

/** Connects an agent to a new server. Its standard error is that of the tests. */
export async function connectAgent(
  command: { command: string; args: string[]; env: Record<string, string>; cwd?: string },
) {
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
    /** Returns the text of a result, and its value if it is JSON. */
    async call(name: string, input: Record<string, unknown> = {}) {
      const { content, isError } = await client.callTool({ name, arguments: input });
      const [{ text }] = content as [{ text: string }];
      const value = /^[{[]/.test(text) ? JSON.parse(text) : null;
      return { is_error: isError === true, text, value };
    },
    /** Closes the input of the server, and waits for its end. */
    async close() {
      await client.close();
      assert.deepEqual(errors, []);
    },
  };
}
