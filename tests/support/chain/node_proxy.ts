/** A node in front of another one: it changes responses on demand. */

/**
 * Returns a response in place of the node's, with `result` or `error`; undefined: the node itself
 * responds.
 */
// deno-lint-ignore no-explicit-any
type Change = (method: string, params: any[]) => object | undefined;

/** Starts a proxy of a node on a free loopback port. */
export function startNodeProxy(node_url: string) {
  const respond = async (body: { id: number; method: string; params: unknown[] }) => {
    const changed = proxy.change(body.method, body.params);
    if (changed) return { jsonrpc: "2.0", id: body.id, ...changed };
    return await (await askNode(node_url, body)).json();
  };
  const { url, close } = serve(async (body) => {
    return Response.json(
      Array.isArray(body) ? await Promise.all(body.map(respond)) : await respond(body),
    );
  });
  const proxy = { url, change: (() => undefined) as Change, [Symbol.asyncDispose]: close };
  return proxy;
}

/** How a signer responds: `lost` signs and gives no response, `dead` does neither. */
type SignerWay = "well" | "lost" | "dead" | "refused";

/** A running signer. */
export type SignerDouble = ReturnType<typeof startSigner>;

/**
 * Starts a signer in front of a node that has the keys: it signs by `eth_sendTransaction` of the
 * node, and loses or refuses responses on demand.
 */
export function startSigner(node_url: string) {
  const { url, close } = serve(async (body) => {
    const [{ nonce, gas, maxFeePerGas }] = body.params;
    signer.nonces.push(Number(nonce));
    signer.fees.push(Number(maxFeePerGas));
    signer.costs.push(Number(gas) * Number(maxFeePerGas));
    if (signer.way === "dead") return new Response(null, { status: 503 });
    if (signer.way === "refused") {
      const error = { code: -32000, message: "authentication needed" };
      return Response.json({ jsonrpc: "2.0", id: body.id, error });
    }
    const signed = await (await askNode(node_url, body)).json();
    return signer.way === "lost" ? new Response(null, { status: 502 }) : Response.json(signed);
  });
  const signer = {
    url,
    way: "well" as SignerWay,
    /** The nonces of the requests, in their order. */
    nonces: [] as number[],
    /** The highest fees of the requests, in wei. */
    fees: [] as number[],
    /** The most that each of them could cost, in wei. */
    costs: [] as number[],
    [Symbol.asyncDispose]: close,
  };
  return signer;
}

/** Starts a node on a free loopback port that responds to each body. */
// deno-lint-ignore no-explicit-any
export function serve(respond: (body: any) => Response | Promise<Response>) {
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    async (request) => await respond(await request.json()),
  );
  return { url: `http://127.0.0.1:${server.addr.port}`, close: () => server.shutdown() };
}

function askNode(node_url: string, body: unknown): Promise<Response> {
  const headers = { "Content-Type": "application/json" };
  return fetch(node_url, { method: "POST", headers, body: JSON.stringify(body) });
}
