/** Responses of a node: the result or the failure of a request, and of a batch. */

import assert from "node:assert/strict";
import {
  callRpc,
  callRpcBatch,
  Quantity,
  RpcError,
  type RpcRequest,
} from "../../shared/connectors/evm/evm_rpc.ts";
import {
  cut,
  json,
  startFaultServer,
  type Step,
  text,
} from "../support/connectors/fault_server.ts";

const REQUEST: RpcRequest<number> = { method: "eth_chainId", params: [], result: Quantity };
const MIB = 1024 * 1024;
const found = (members: Record<string, unknown>) => ({ jsonrpc: "2.0", id: 0, ...members });
const failed = (code: number, message: string) => found({ id: null, error: { code, message } });
/** A response of JSON with spaces, which is as long as asked for. */
const padded = (length: number) => JSON.stringify(found({ result: "0x1" })).padEnd(length);

/** Redirects to another path, which has the result. */
const redirected: Step = (response, received) =>
  received.path === "/other"
    ? json(200, found({ result: "0x1" }))(response, received)
    : text(307, "", { location: "/other" })(response, received);

/** [name, response of the node, result or kind of the failure] */
const RESPONSES: [string, Step, number | string][] = [
  ["a result", json(200, found({ result: "0x10" })), 16],
  ["a result of another shape", json(200, found({ result: "16" })), "garbage"],
  ["no result", json(200, found({})), "garbage"],
  ["the result of another request", json(200, found({ id: 1, result: "0x1" })), "garbage"],
  ["no JSON-RPC", json(200, { result: "0x1" }), "garbage"],
  ["no JSON", text(200, "<html>"), "garbage"],
  ["an error without an id", json(200, failed(-32000, "reverted")), "refused -32000"],
  ["an error with the status 400", json(400, failed(-32602, "invalid")), "refused -32602"],
  ["an error with the status 429", json(429, failed(-32005, "too many")), "status 429"],
  ["an error with the status 503", json(503, failed(-32000, "busy")), "status 503"],
  ["a result with the status 400", json(400, found({ result: "0x1" })), "status 400"],
  ["a code for ranges", json(200, failed(-32005, "no")), "limit -32005"],
  ["words for ranges", json(200, failed(-32000, "block range is too large")), "limit -32000"],
  ["a size of the response", json(200, failed(-32000, "max 10000 logs")), "limit -32000 too long"],
  ["a rate", json(200, failed(-32005, "daily request rate exceeded")), "refused -32005"],
  ["the status 413", text(413, ""), "limit 413"],
  ["4 MiB", text(200, padded(4 * MIB)), 1],
  ["a byte more than 4 MiB", text(200, padded(4 * MIB + 1)), "limit too long"],
  ["a connection that ends", cut(), "connection"],
  ["a part of a response", cut("{"), "connection"],
  ["a redirect", redirected, "connection"],
];
for (const [name, step, expected] of RESPONSES) {
  Deno.test(`callRpc() of ${name}: ${expected}`, async () => {
    await using node = await startFaultServer(step);
    assert.equal(await told(callRpc(node.base_url, REQUEST, AbortSignal.timeout(9_000))), expected);
  });
}

/** [name, response to a batch of two, results or kind of the failure] */
const BATCHES: [string, Step, number[] | string][] = [
  ["reversed", json(200, [found({ id: 1, result: "0x2" }), found({ result: "0x1" })]), [1, 2]],
  ["without one", json(200, [found({ result: "0x1" })]), "garbage"],
  [
    "with an error",
    json(200, [found({ result: "0x1" }), found({ id: 1, error: { code: 3, message: "no" } })]),
    "refused 3",
  ],
  ["as one error", json(200, failed(-32600, "no batches")), "refused -32600"],
  ["as one result", json(200, found({ result: "0x1" })), "garbage"],
  ["of other values", json(200, [1, 2]), "garbage"],
];
for (const [name, step, expected] of BATCHES) {
  Deno.test(`callRpcBatch() ${name}: ${expected}`, async () => {
    await using node = await startFaultServer(step);
    const signal = AbortSignal.timeout(9_000);
    assert.deepEqual(await told(callRpcBatch(node.base_url, [REQUEST, REQUEST], signal)), expected);
  });
}

Deno.test("callRpcBatch() sends at most 50 requests at a time, and one alone without a list", async () => {
  const sizes: number[] = [];
  await using node = await startFaultServer((response, { form }) => {
    const sent = JSON.parse([...form.keys()].join("&"));
    const list = Array.isArray(sent) ? sent : [sent];
    sizes.push(Array.isArray(sent) ? sent.length : 0);
    const results = list.map(({ id }) => found({ id, result: "0x1" }));
    response.writeHead(200).end(JSON.stringify(Array.isArray(sent) ? results : results[0]));
  });
  const signal = AbortSignal.timeout(9_000);
  const requests = Array.from({ length: 101 }, () => REQUEST);
  assert.equal((await callRpcBatch(node.base_url, requests, signal)).length, 101);
  assert.deepEqual(sizes, [50, 50, 0]);
  assert.deepEqual(await callRpcBatch(node.base_url, [], signal), []);
});

Deno.test("callRpc() of a node that does not respond: timeout", async () => {
  await using node = await startFaultServer(() => {});
  assert.equal(await told(callRpc(node.base_url, REQUEST, AbortSignal.timeout(100))), "timeout");
});

Deno.test("no message repeats an address with its key", async () => {
  const message = "see https://node.example/v2/KEY for help";
  await using node = await startFaultServer(json(200, failed(-32000, message)));
  const signal = AbortSignal.timeout(9_000);
  await assert.rejects(callRpc(node.base_url, REQUEST, signal), (error: Error) => {
    assert.match(error.message, /see … for help$/);
    return true;
  });
});

/** Returns a result, or the kind of the failure with its code. */
async function told<T>(work: Promise<T>): Promise<T | string> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof RpcError)) throw error;
    const { kind, code, is_too_long } = error;
    return `${kind}${code === null ? "" : ` ${code}`}${is_too_long ? " too long" : ""}`;
  }
}
