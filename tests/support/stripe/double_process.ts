/**
 * The process of the double of Stripe: localstripe decides about payments, and this process adds
 * idempotency keys, durable books, events, signed notifications, limits of refunds, fees, disputes,
 * payouts and connected accounts. It shares no code with the service. A second port plants faults
 * and shows the books.
 *
 * Arguments: the URL of localstripe, the journal's path and the two ports. It prints a line when both
 * ports listen.
 */

import { createServer, type ServerResponse } from "node:http";
import { administer } from "./admin.ts";
import { Api, type HttpCall } from "./api.ts";
import { Engine, EngineAway } from "./engine.ts";
import { Faults, SERVER_ERROR } from "./faults.ts";
import { Journal } from "./journal.ts";
import { Notifier } from "./notifications.ts";

/** Serves one port. With node:http a server can close a connection without a response. */
function listen(
  port: number,
  handle: (call: HttpCall, response: ServerResponse) => Promise<void>,
): Promise<void> {
  const server = createServer(async (request, response) => {
    try {
      const parts: Uint8Array<ArrayBuffer>[] = [];
      for await (const part of request) parts.push(part);
      const text = await new Blob(parts).text();
      const url = new URL(request.url!, "http://127.0.0.1");
      await handle({ method: request.method!, url, headers: request.headers, text }, response);
    } catch (error) {
      // While localstripe is not running, the double is a server in trouble. A killed client is gone.
      const is_gone = (error as { code?: string }).code === "ECONNRESET";
      if (!(error instanceof EngineAway) && !is_gone) {
        console.error(`500 for ${request.method} ${request.url}:`, error);
      }
      if (!response.headersSent) response.writeHead(500, { "content-type": "application/json" });
      response.end(SERVER_ERROR);
    }
  });
  return new Promise((resolve) => void server.listen(port, "127.0.0.1", resolve));
}

const [engine_url = "", journal_path = "", port, admin_port] = Deno.args;
const journal = new Journal(journal_path);
const api = new Api(journal, new Engine(engine_url), new Faults(), new Notifier(journal));
api.base_url = `http://127.0.0.1:${port}`;
await listen(Number(port), (call, response) => api.serve(call, response));
await listen(Number(admin_port), async (call, response) => {
  const { status, body } = await administer(call, api);
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
});
console.log("ready");
