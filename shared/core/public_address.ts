/**
 * The IP addresses that webhooks may reach. The address lists stand only here.
 *
 * The module accepts canonical text only: dotted decimal without leading zeros, or IPv6 in the form
 * of RFC 5952 without a zone id. IPv6 is public only inside 2000::/3. IPv6 addresses that embed an
 * IPv4 address (mapped, compatible, NAT64, 6to4, Teredo) are refused, even if the IPv4 address is
 * public. The module cannot detect a NAT64 prefix that the operator's own network has taken from
 * public space. Source: IANA special-purpose registries (RFC 6890, RFC 8190), RFC 4291,
 * security §2.
 */

/** IPv4 ranges that are not public, each as first address and prefix length. */
const IPV4_REFUSED = [
  ipv4Range("0.0.0.0", 8), // this network
  ipv4Range("10.0.0.0", 8), // private (RFC 1918)
  ipv4Range("100.64.0.0", 10), // carrier-grade NAT (RFC 6598)
  ipv4Range("127.0.0.0", 8), // loopback
  ipv4Range("168.63.129.16", 32), // Azure's platform services
  ipv4Range("169.254.0.0", 16), // link-local, metadata services of cloud providers
  ipv4Range("172.16.0.0", 12), // private
  ipv4Range("192.0.0.0", 24), // protocol assignments
  ipv4Range("192.0.2.0", 24), // documentation
  ipv4Range("192.31.196.0", 24), // AS112
  ipv4Range("192.52.193.0", 24), // automatic multicast tunnelling
  ipv4Range("192.88.99.0", 24), // 6to4 relay
  ipv4Range("192.168.0.0", 16), // private
  ipv4Range("192.175.48.0", 24), // AS112
  ipv4Range("198.18.0.0", 15), // benchmarking
  ipv4Range("198.51.100.0", 24), // documentation
  ipv4Range("203.0.113.0", 24), // documentation
  ipv4Range("224.0.0.0", 4), // multicast
  ipv4Range("240.0.0.0", 4), // reserved, broadcast
];

/** The IPv6 range of public unicast addresses (RFC 4291 §2.4). */
const IPV6_ALLOWED = ipv6Range("2000::", 3);

/** Ranges inside `IPV6_ALLOWED` that are not public or embed an IPv4 address. */
const IPV6_REFUSED = [
  ipv6Range("2001::", 23), // protocol assignments: Teredo, ORCHID, benchmarking
  ipv6Range("2001:db8::", 32), // documentation
  ipv6Range("2002::", 16), // 6to4
  ipv6Range("2620:4f:8000::", 48), // AS112
  ipv6Range("3fff::", 20), // documentation (RFC 9637)
];

/** Loopback and private networks, which `allow_private` permits. Link-local stays refused. */
const IPV4_PRIVATE = [
  ipv4Range("10.0.0.0", 8),
  ipv4Range("127.0.0.0", 8),
  ipv4Range("172.16.0.0", 12),
  ipv4Range("192.168.0.0", 16),
];
const IPV6_PRIVATE = [ipv6Range("::1", 128), ipv6Range("fc00::", 7)];

/** First and last address of a range; both belong to it. */
type Range<T extends number | bigint> = readonly [T, T];

/** Reports whether the text is a canonical, public IP address. */
export function isPublicAddress(ip: string): boolean {
  const v4 = parseIpv4(ip);
  if (v4 !== null) return !within(v4, IPV4_REFUSED);
  const v6 = parseIpv6(ip);
  return v6 !== null && within(v6, [IPV6_ALLOWED]) && !within(v6, IPV6_REFUSED);
}

/**
 * Reports whether the text is a canonical address of loopback or of a private network. Webhooks may
 * reach such an address only if the operator sets ALLOW_PRIVATE_WEBHOOKS.
 */
export function isPrivateAddress(ip: string): boolean {
  const v4 = parseIpv4(ip);
  if (v4 !== null) return within(v4, IPV4_PRIVATE);
  const v6 = parseIpv6(ip);
  return v6 !== null && within(v6, IPV6_PRIVATE);
}

/** Returns the 32-bit value of canonical dotted decimal, or null. */
function parseIpv4(text: string): number | null {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text);
  if (match === null) return null;
  let value = 0;
  for (const part of match.slice(1)) {
    if (Number(part) > 255 || String(Number(part)) !== part) return null;
    value = value * 256 + Number(part);
  }
  return value;
}

/** Returns the 128-bit value of RFC 5952 text without an embedded IPv4 part, or null. */
function parseIpv6(text: string): bigint | null {
  if (text.length > 39 || !/^[0-9a-f:]+$/.test(text)) return null;
  const halves = text.split("::");
  if (halves.length > 2) return null;
  const [head, tail] = halves.map((half) => half === "" ? [] : half.split(":"));
  const groups = [...head!];
  if (tail !== undefined) {
    const missing = 8 - head!.length - tail.length;
    if (missing < 1) return null;
    groups.push(...Array<string>(missing).fill("0"), ...tail);
  }
  if (groups.length !== 8 || !groups.every((group) => /^[0-9a-f]{1,4}$/.test(group))) return null;
  const numbers = groups.map((group) => parseInt(group, 16));
  if (formatIpv6(numbers) !== text) return null;
  return numbers.reduce((value, group) => value << 16n | BigInt(group), 0n);
}

/** Formats by RFC 5952: no leading zeros, and `::` for the first of the longest runs of zeros. */
function formatIpv6(groups: readonly number[]): string {
  let best = { at: -1, length: 1 };
  for (let at = 0; at < 8; at++) {
    let length = 0;
    while (at + length < 8 && groups[at + length] === 0) length++;
    if (length > best.length) best = { at, length };
  }
  const hex = groups.map((group) => group.toString(16));
  if (best.at < 0) return hex.join(":");
  return `${hex.slice(0, best.at).join(":")}::${hex.slice(best.at + best.length).join(":")}`;
}

function ipv4Range(first: string, bits: number): Range<number> {
  const value = parseIpv4(first);
  if (value === null) throw new Error(`address list "${first}": not a canonical IPv4 address`);
  return [value, value + 2 ** (32 - bits) - 1];
}

function ipv6Range(first: string, bits: number): Range<bigint> {
  const value = parseIpv6(first);
  if (value === null) throw new Error(`address list "${first}": not a canonical IPv6 address`);
  return [value, value + (1n << BigInt(128 - bits)) - 1n];
}

function within<T extends number | bigint>(value: T, ranges: readonly Range<T>[]): boolean {
  return ranges.some(([first, last]) => value >= first && value <= last);
}
