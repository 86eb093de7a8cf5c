/** Host names of the own machine. */

/** The host names, as `URL` writes them. */
const LOOPBACK: readonly string[] = ["127.0.0.1", "localhost", "[::1]"];

/** Reports whether the host name of a URL belongs to the own machine. */
export function isLoopback(hostname: string): boolean {
  return LOOPBACK.includes(hostname);
}

/** Returns the hosts at which the service of a URL responds: on loopback all of its names. */
export function ownHosts({ host, hostname, port }: URL): string[] {
  if (!isLoopback(hostname)) return [host];
  return LOOPBACK.map((name) => port ? `${name}:${port}` : name);
}
