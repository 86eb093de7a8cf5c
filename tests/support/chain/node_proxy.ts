/** A node in front of another one: it changes responses on demand, and counts the requests. */

/**
 * Returns a response in place of the node's, with `result` or `error`; undefined: the node itself
 * responds.
 */
// deno-lint-ignore no-explicit-any
type Change = (method: string, params: any[]) => object | undefined;

/** A running proxy. */
interface NodeProxy extends AsyncDisposable {
  url: string;
  change: Change;
  /** HTTP requests so far: a batch is one. */
  requests: number;
}

/** Starts a proxy of a node on a free loopback port. */
export function startNodeProxy(node_url: string): NodeProxy {
  const respond = async (body: { id: number; method: string; params: unknown[] }) => {
    const changed = proxy.change(body.method, body.params);
    if (changed) return { jsonrpc: "2.0", id: body.id, ...changed };
    const headers = { "Content-Type": "application/json" };
    const sent = await fetch(node_url, { method: "POST", headers, body: JSON.stringify(body) });
    return await sent.json();
  };
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    async (request) => {
      proxy.requests++;
      const body = await request.json();
      return Response.json(
        Array.isArray(body) ? await Promise.all(body.map(respond)) : await respond(body),
      );
    },
  );
  const proxy: NodeProxy = {
    url: `http://127.0.0.1:${server.addr.port}`,
    change: () => undefined,
    requests: 0,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
  return proxy;
}
