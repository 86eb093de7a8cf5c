/**
 * How the client names itself to whoever reads the operator's logs.
 */

/** Version of this package. */
export const VERSION = "1.0.0";

/**
 * The header that names the client; none in a browser: there it is the browser's own, and would be
 * one more that the service has to allow.
 */
export function userAgentHeader(user_agent: string | undefined): { "User-Agent"?: string } {
  return user_agent?.startsWith("Mozilla/") ? {} : { "User-Agent": `payments-client/${VERSION}` };
}
