/**
 * Resolves host names, for a sender that checks the addresses before it connects.
 *
 * A public name is resolved by DNS only and as a fully qualified name. So neither the hosts file
 * nor a search domain of the operator's network can respond for a customer's name. Where the
 * operator allows private receivers, the system resolves the name. The sender checks the addresses
 * (security §2, server-side request forgery).
 */
import { lookup } from "node:dns/promises";

/**
 * Returns all addresses of a host name, in canonical text. Returns an empty list or throws if there
 * is none, or when `signal` aborts.
 */
export type Resolve = (host: string, signal: AbortSignal) => Promise<string[]>;

/**
 * Creates a resolver that queries A and AAAA records concurrently. If one query fails, the other
 * one still counts.
 * @param name_server replaces the system's name server, for tests
 */
export function publicNameResolver(name_server?: { ipAddr: string; port: number }): Resolve {
  return async (host, signal) => {
    const options = name_server === undefined ? { signal } : { signal, nameServer: name_server };
    const responses = await Promise.allSettled([
      Deno.resolveDns(`${host}.`, "A", options),
      Deno.resolveDns(`${host}.`, "AAAA", options),
    ]);
    return responses.flatMap((response) => response.status === "fulfilled" ? response.value : []);
  };
}

/** Resolves a public name with the system's name server. */
export const resolvePublicName: Resolve = publicNameResolver();

/** Resolves a name as the system does: hosts file, names of containers, search domains. */
export const resolveLocalName: Resolve = async (host) => {
  // RFC 6761 §6.3: `localhost` is loopback, and no name server is queried.
  if (host === "localhost" || host.endsWith(".localhost")) return ["127.0.0.1", "::1"];
  const responses = await lookup(host, { all: true });
  return responses.map(({ address }) => address);
};
