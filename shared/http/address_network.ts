/**
 * The network of an address that a request comes from: what one client can choose addresses of freely.
 * That is an IPv4 address, or the /64 of an IPv6 address (RFC 6177: the least that a site is given).
 */

/** Longer than any address with a port and a zone. */
const MAX_ADDRESS = 80;
const BRACKETED = /^\[([^\]]*)\](?::\d{1,5})?$/;
const IPV4 = /^(\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})(?::\d{1,5})?$/;
/** Groups of sixteen bits in an address, and in its network. */
const GROUPS = 8;
const NETWORK_GROUPS = 4;

/** The network, as text. Texts that are no address are one network, so that they cannot be many. */
export function networkOf(address: string): string {
  if (address.length > MAX_ADDRESS) return "unknown";
  const ipv4 = IPV4.exec(address)?.[1];
  if (ipv4 !== undefined) return ipv4;
  const [bare = ""] = (BRACKETED.exec(address)?.[1] ?? address).split("%");
  const groups = ipv6Groups(bare);
  if (groups === null) return "unknown";
  // An IPv4 address in the form of IPv6 is that address.
  if (groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff) {
    return [groups[6]! >> 8, groups[6]! & 255, groups[7]! >> 8, groups[7]! & 255].join(".");
  }
  return `${groups.slice(0, NETWORK_GROUPS).map((group) => group.toString(16)).join(":")}::/64`;
}

/** The groups of an address; null when it is none. The URL parser knows every way to write one. */
function ipv6Groups(text: string): number[] | null {
  if (!text.includes(":")) return null;
  const canonical = URL.parse(`http://[${text}]/`)?.hostname.slice(1, -1);
  if (canonical === undefined) return null;
  const [head = [], tail = []] = canonical.split("::")
    .map((part) => part === "" ? [] : part.split(":").map((group) => parseInt(group, 16)));
  return [...head, ...Array(GROUPS - head.length - tail.length).fill(0), ...tail];
}
