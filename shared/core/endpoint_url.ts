/**
 * Which URLs may be webhook endpoints: checked when an endpoint is written and again at every
 * attempt, because rules and settings change while URLs are stored.
 *
 * Pure: names are judged by their text here; their addresses are judged by the sender after it has
 * resolved them. Store and use `href`, never the text that came in. Everything WHATWG parsing would
 * silently repair (tabs, backslashes, missing slashes, an empty userinfo) is refused, so that no
 * second parser can read the URL otherwise. Source: contract §4, security.md §2, WHATWG URL.
 */
import { isPrivateAddress, isPublicAddress } from "./public_address.ts";

/** Longest URL in characters, as given and as stored (contract §4). */
const ENDPOINT_URL_LENGTH_MAX = 2048;

/** Longest host name in characters (RFC 1035 §2.3.4). */
const HOST_LENGTH_MAX = 253;

/** Below this port only the scheme's own port is open: everything else there is no web hook. */
const FREE_PORT_MIN = 1024;

/**
 * Ports that belong to other protocols; the list that browsers block (WHATWG Fetch, "bad port").
 * The hosted platform blocks 25 and 587 by itself.
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
 * Names that never belong to the public internet, each with all names below it: special-use names
 * (RFC 6761, 6762, 7686, 8375, 9476), ICANN's `.internal` and collision list, names that networks
 * use by habit. `.example` is left out: it resolves to nothing and stands in documentation.
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

/** A label of a public host name; private ones may hold underscores, as containers' names do. */
const PUBLIC_LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const PRIVATE_LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;

/** Why a URL was refused; one word per rule, used by tests and logs. */
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

/** What the operator decided, not the customer. */
interface EndpointUrlRules {
  /** ALLOW_PRIVATE_WEBHOOKS: http, names without a dot and private addresses too. */
  allow_private: boolean;
  /** Our own hosts, each `host` (every port) or `host:port`, lower case. */
  own_hosts: readonly string[];
}

/** An accepted URL. `host` is a name or an address without brackets; `port` is never implied. */
export interface EndpointUrl {
  href: string;
  host: string;
  port: number;
}

/** A refused URL: `reason` for programs, `message` fit for a 400 with the param `url`. */
export class EndpointUrlError extends Error {
  override readonly name = "EndpointUrlError";
  constructor(readonly reason: EndpointUrlReason, why: string) {
    super(`This URL cannot be used for webhooks: ${why}`);
  }
}

/**
 * Reads and judges the URL of a webhook endpoint.
 * @returns the normalised URL with the host and port to connect to
 * @throws {EndpointUrlError} naming the first rule that it breaks
 */
export function checkEndpointUrl(text: string, rules: EndpointUrlRules): EndpointUrl {
  const url = parseStrictly(text, rules.allow_private);
  const host = url.hostname.replace(/^\[|\]$/g, "");
  checkHost(host, rules.allow_private);
  const port = Number(url.port || (url.protocol === "https:" ? 443 : 80));
  checkPort(port, url.protocol, rules.allow_private);
  if (rules.own_hosts.some((own) => own === host || own === `${host}:${port}`)) {
    throw new EndpointUrlError("own_host", `"${host}" is this service itself`);
  }
  return { href: url.href, host, port };
}

/** Refuses everything that a parser would have to repair, then parses. */
function parseStrictly(text: string, allow_private: boolean): URL {
  refuseWhen(text.length > ENDPOINT_URL_LENGTH_MAX, "too_long", TOO_LONG);
  refuseWhen(
    // deno-lint-ignore no-control-regex -- control characters are what is looked for
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
  // The parser removes an empty port and refuses bad hosts without saying why.
  refuseWhen(authority!.endsWith(":"), "not_a_url", "the port is missing after the colon");
  const url = URL.canParse(text) ? new URL(text) : null;
  refuseWhen(url === null, "not_a_url", "the host or port cannot be read");
  refuseWhen(url!.href.length > ENDPOINT_URL_LENGTH_MAX, "too_long", TOO_LONG);
  return url!;
}

const TOO_LONG = `it is longer than ${ENDPOINT_URL_LENGTH_MAX} characters`;

/** Judges a host as WHATWG normalised it: numbers in any notation have become dotted decimal. */
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
    `"${host}" is a name of private networks, not of the internet`,
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
    `port ${port} is not allowed: use 443, or one from ${FREE_PORT_MIN} up that no other ` +
      "protocol owns",
  );
}

function refuseWhen(condition: boolean, reason: EndpointUrlReason, why: string): void {
  if (condition) throw new EndpointUrlError(reason, why);
}
