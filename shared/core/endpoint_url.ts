/**
 * Rules for the URLs of webhook endpoints. The service checks a URL when an endpoint is written and
 * again at every attempt, because rules and settings can change in between.
 *
 * Pure: this module judges host names by their text. The sender resolves a name and checks the
 * addresses. Callers store and use `href`, not the text of the request. Text that a WHATWG parser
 * would silently repair (tabs, backslashes, missing slashes, an empty userinfo) is refused, so that
 * no other parser can read the URL differently. Source: contract §4, security §2, WHATWG URL.
 */
import { isPrivateAddress, isPublicAddress } from "./public_address.ts";

/** Longest URL in characters, as given and as stored (contract §4). */
export const ENDPOINT_URL_LENGTH_MAX = 2048;

/** Longest host name in characters (RFC 1035 §2.3.4). */
const HOST_LENGTH_MAX = 253;

/** Below this port only the scheme's default port is accepted. Other services use the rest. */
const FREE_PORT_MIN = 1024;

/**
 * Ports of other protocols, from the list that browsers block (WHATWG Fetch, "bad port"). The
 * hosted platform also blocks 25 and 587.
 */
// deno-fmt-ignore
const BAD_PORTS = new Set([
  0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101,
  102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427,
  465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990,
  993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667,
  6668, 6669, 6679, 6697, 10080,
]);

/**
 * Top-level names that are not part of the public internet: special-use names (RFC 6761, 6762,
 * 7686, 8375, 9476), ICANN's `.internal` and collision list, and common names of private networks.
 * `.example` is accepted, because documentation uses it and it does not resolve.
 */
const RESERVED_SUFFIXES = [
  "localhost",
  "localdomain",
  "local",
  "internal",
  "intranet",
  "private",
  "lan",
  "home",
  "corp",
  "mail",
  "arpa",
  "onion",
  "alt",
  "test",
  "invalid",
] as const;

/**
 * The path of an edge function that is not of this service. Supabase serves all functions of a
 * project from one host, so a receiver can be next to the service (ADR 0016).
 */
const OTHER_FUNCTION = /^\/functions\/v1\/(?!api-v1-)[a-z0-9_-]+(?:\/|$)/i;

/** A label of a public host name. A private one may contain underscores, as in container names. */
const PUBLIC_LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const PRIVATE_LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;

/** Reasons to refuse a URL, one for each rule. Tests and logs use them. */
export const ENDPOINT_URL_REASONS = [
  "too_long",
  "characters",
  "not_a_url",
  "scheme",
  "userinfo",
  "fragment",
  "host",
  "reserved_host",
  "address",
  "port",
  "own_host",
] as const;
type EndpointUrlReason = typeof ENDPOINT_URL_REASONS[number];

interface EndpointUrlRules {
  /** ALLOW_PRIVATE_WEBHOOKS: also accepts http, names without a dot and private addresses. */
  allow_private: boolean;
  /**
   * Hosts of this service, each as `host` (all ports) or `host:port`, in lower case. Only other
   * edge functions of these hosts are accepted.
   */
  own_hosts: readonly string[];
}

/** An accepted URL. `host` is a name or an address without brackets. `port` is always set. */
export interface EndpointUrl {
  url: URL;
  host: string;
  port: number;
}

/** A refused URL: `reason` is for programs, `message` is for a 400 with the param `url`. */
export class EndpointUrlError extends Error {
  override readonly name = "EndpointUrlError";
  constructor(readonly reason: EndpointUrlReason, why: string) {
    super(`This URL cannot be used for webhooks: ${why}`);
  }
}

/**
 * Parses the URL of a webhook endpoint and checks it against the rules.
 * @returns the normalised URL, with the host and port to connect to
 * @throws {EndpointUrlError} with the first rule that the URL breaks
 */
export function checkEndpointUrl(text: string, rules: EndpointUrlRules): EndpointUrl {
  const url = parseStrictly(text, rules.allow_private);
  const host = url.hostname.replace(/^\[|\]$/g, "");
  checkHost(host, rules.allow_private);
  const port = Number(url.port || (url.protocol === "https:" ? 443 : 80));
  checkPort(port, url.protocol, rules.allow_private);
  const is_own = rules.own_hosts.some((own) => own === host || own === `${host}:${port}`);
  if (is_own && !OTHER_FUNCTION.test(url.pathname)) {
    throw new EndpointUrlError(
      "own_host",
      `"${host}" is a host of this service: use a host of your own`,
    );
  }
  return { url, host, port };
}

/** Refuses a text that the parser would repair, and parses the rest. */
function parseStrictly(text: string, allow_private: boolean): URL {
  refuseWhen(text.length > ENDPOINT_URL_LENGTH_MAX, "too_long", TOO_LONG);
  refuseWhen(
    // deno-lint-ignore no-control-regex -- the pattern searches for control characters
    /[\u0000-\u0020\u007f-\u00a0\ufeff\\]/.test(text) || !text.isWellFormed(),
    "characters",
    "it contains spaces, control characters or backslashes",
  );
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(text)?.[1]?.toLowerCase();
  refuseWhen(scheme === undefined, "not_a_url", "it must begin with https://");
  const schemes = allow_private ? ["https", "http"] : ["https"];
  refuseWhen(
    !schemes.includes(scheme!),
    "scheme",
    allow_private ? "it must begin with https:// or http://" : "it must begin with https://",
  );
  const authority = /^[a-z]+:\/\/([^/?#]+)/i.exec(text)?.[1];
  refuseWhen(authority === undefined, "not_a_url", "a host name must follow //");
  refuseWhen(authority!.includes("@"), "userinfo", "it contains a user name or password");
  refuseWhen(text.includes("#"), "fragment", "it contains a fragment (#)");
  // The parser drops an empty port silently, and gives no reason when it refuses a host.
  refuseWhen(authority!.endsWith(":"), "not_a_url", "the port is missing after the colon");
  const url = URL.parse(text);
  refuseWhen(url === null, "not_a_url", "its host or port is not valid");
  refuseWhen(url!.href.length > ENDPOINT_URL_LENGTH_MAX, "too_long", TOO_LONG);
  return url!;
}

const TOO_LONG = `it is longer than ${ENDPOINT_URL_LENGTH_MAX} characters`;

/** Checks a host after WHATWG parsing, which turns IPv4 in any notation into dotted decimal. */
function checkHost(host: string, allow_private: boolean): void {
  if (host.includes(":") || /^\d+\.\d+\.\d+\.\d+$/.test(host)) {
    refuseWhen(
      !isPublicAddress(host) && !(allow_private && isPrivateAddress(host)),
      "address",
      `"${host}" is not a public address`,
    );
    return;
  }
  const labels = host.split(".");
  const label = allow_private ? PRIVATE_LABEL : PUBLIC_LABEL;
  refuseWhen(
    host.length > HOST_LENGTH_MAX || !labels.every((part) => label.test(part)),
    "host",
    `"${host}" is not a host name`,
  );
  if (allow_private) return;
  refuseWhen(
    RESERVED_SUFFIXES.some((name) => name === labels.at(-1)),
    "reserved_host",
    `"${host}" is a name for private networks: use a public host name`,
  );
  refuseWhen(
    labels.length < 2,
    "host",
    `"${host}" is not a name of the public internet: it has no dot`,
  );
}

function checkPort(port: number, protocol: string, allow_private: boolean): void {
  const own = protocol === "https:" ? 443 : 80;
  const low = port < FREE_PORT_MIN && port !== own && !allow_private;
  refuseWhen(
    low || BAD_PORTS.has(port),
    "port",
    `port ${port} is not allowed: use 443, or a port from ${FREE_PORT_MIN} up that no other ` +
      "protocol uses",
  );
}

function refuseWhen(condition: boolean, reason: EndpointUrlReason, why: string): void {
  if (condition) throw new EndpointUrlError(reason, why);
}
