/**
 * The network of a client, which contains all addresses that one client can choose. It is an IPv4
 * address or the /64 of an IPv6 address, because a site has at least a /64 (RFC 6177).
 */

/** Length limit. Every address with a port and a zone is shorter. */
const MAX_ADDRESS = 80;
const BRACKETED = /^\[([^\]]*)\](?::\d{1,5})?$/;
const IPV4 = /^(\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})(?::\d{1,5})?$/;
/** Groups of sixteen bits in an address, and in its network. */
const GROUPS = 8;
const NETWORK_GROUPS = 4;

/** Returns the network as text. All texts that are not an address belong to one network. */
export function networkOf(address: string): string {
  if (address.length > MAX_ADDRESS) return "unknown";
  const ipv4 = IPV4.exec(address)?.[1];
  if (ipv4 !== undefined) return ipv4;
  const [bare = ""] = (BRACKETED.exec(address)?.[1] ?? address).split("%");
  const groups = ipv6Groups(bare);
  if (groups === null) return "unknown";
  // An IPv4-mapped IPv6 address counts as its IPv4 address.
  if (groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff) {
    return [groups[6]! >> 8, groups[6]! & 255, groups[7]! >> 8, groups[7]! & 255].join(".");
  }
  return `${groups.slice(0, NETWORK_GROUPS).map((group) => group.toString(16)).join(":")}::/64`;
}

/** Returns the groups of an IPv6 address, or null. The URL parser handles every notation. */
function ipv6Groups(text: string): number[] | null {
  if (!text.includes(":")) return null;
  const canonical = URL.parse(`http://[${text}]/`)?.hostname.slice(1, -1);
  if (canonical === undefined) return null;
  const [head = [], tail = []] = canonical.split("::")
    .map((part) => part === "" ? [] : part.split(":").map((group) => parseInt(group, 16)));
  return [...head, ...Array(GROUPS - head.length - tail.length).fill(0), ...tail];
}
