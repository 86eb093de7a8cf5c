/** `mcp`: a server of the Model Context Protocol on stdio, which gives an agent a sandbox. */

import { type Command, CommandError, EXIT, refuseArguments, UsageError } from "../command.ts";
import { clientOf, isTestKey, serviceOfEnvironment, VARIABLES } from "../service_access.ts";
import { startSandbox } from "../start_sandbox.ts";
import { stopSignal } from "../stop_signal.ts";

export const MCP: Command = {
  name: "mcp",
  summary: "Give an agent tools for a sandbox, over the Model Context Protocol on stdio",
  options: {},
  examples: ["mcp"],
  async run(_values, args, surroundings) {
    refuseArguments(args);
    const given = serviceOfEnvironment(surroundings);
    if (given !== null && !isTestKey(given.key)) {
      throw new UsageError(`${VARIABLES.key} must be a test key: an agent gets a sandbox only`);
    }
    const stop = stopSignal();
    // The SDK is large, and no other command needs it.
    const { serveAgent } = await import("../mcp/agent_server.ts");
    if (given !== null) {
      await serveAgent({ client: clientOf(given), base_url: given.base_url }, stop);
      return EXIT.success;
    }
    const { baseUrl: base_url, testKey: test_key, ...own } = await startSandbox({
      onProgress: surroundings.printMessage,
    });
    try {
      const client = clientOf({ base_url, key: test_key, Fault: CommandError });
      await serveAgent({ client, base_url, test_key }, stop);
    } finally {
      await own.stop();
    }
    return EXIT.success;
  },
};
