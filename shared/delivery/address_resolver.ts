/**
 * Names to addresses, for senders that must know the address before they connect.
 *
 * Two ways: over DNS alone for the internet, with the name taken as complete, so that neither the
 * hosts file nor a search domain of the operator's network answers for a customer's name; and as
 * the system does it, where the operator allows private receivers. The answers are not judged here.
 */
import { lookup } from "node:dns/promises";

/**
 * Gives every address of a host name, in canonical text.
 * @throws or gives an empty list when there is none; ends early, by either, once `signal` aborts
 */
export type Resolve = (host: string, signal: AbortSignal) => Promise<string[]>;

/**
 * A and AAAA records, asked for at once; one kind that fails does not spoil the other.
 * @param name_server in place of the system's, for tests
 */
export function publicNameResolver(name_server?: { ipAddr: string; port: number }): Resolve {
  return async (host, signal) => {
    const options = name_server === undefined ? { signal } : { signal, nameServer: name_server };
    const answers = await Promise.allSettled([
      Deno.resolveDns(`${host}.`, "A", options),
      Deno.resolveDns(`${host}.`, "AAAA", options),
    ]);
    return answers.flatMap((answer) => answer.status === "fulfilled" ? answer.value : []);
  };
}

/** Names of the internet, from the system's name server. */
export const resolvePublicName: Resolve = publicNameResolver();

/** The system's way: hosts file, containers' names, search domains. `localhost` is loopback. */
export const resolveLocalName: Resolve = async (host) => {
  // RFC 6761 §6.3: never asked of any server.
  if (host === "localhost" || host.endsWith(".localhost")) return ["127.0.0.1", "::1"];
  const answers = await lookup(host, { all: true });
  return answers.map(({ address }) => address);
};
