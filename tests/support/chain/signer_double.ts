/**
 * A signer in front of a node that has the keys: it signs by `eth_sendTransaction` of the node, and
 * loses or refuses responses on demand.
 */

/** How the signer responds: `lost` signs and gives no response, `dead` does neither. */
type SignerWay = "well" | "lost" | "dead" | "refused";

/** A running signer. */
export interface SignerDouble extends AsyncDisposable {
  url: string;
  way: SignerWay;
  /** The nonces of the requests, in their order. */
  nonces: number[];
  /** The highest fees of the requests, in wei. */
  fees: number[];
  /** The most that each of them could cost, in wei. */
  costs: number[];
}

/** Starts a signer on a free loopback port. */
export function startSigner(node_url: string): SignerDouble {
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    async (request) => {
      const body = await request.json();
      const [{ nonce, gas, maxFeePerGas }] = body.params;
      signer.nonces.push(Number(nonce));
      signer.fees.push(Number(maxFeePerGas));
      signer.costs.push(Number(gas) * Number(maxFeePerGas));
      if (signer.way === "dead") return new Response(null, { status: 503 });
      if (signer.way === "refused") {
        const error = { code: -32000, message: "authentication needed" };
        return Response.json({ jsonrpc: "2.0", id: body.id, error });
      }
      const headers = { "Content-Type": "application/json" };
      const response = await fetch(node_url, {
        method: "POST",
        headers,
        body: JSON.stringify(body),
      });
      const text = await response.text();
      if (signer.way === "lost") return new Response(null, { status: 502 });
      return new Response(text, { headers });
    },
  );
  const signer: SignerDouble = {
    url: `http://127.0.0.1:${server.addr.port}`,
    way: "well",
    nonces: [],
    fees: [],
    costs: [],
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
  return signer;
}
