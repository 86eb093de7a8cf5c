/** The name and version of the client, which it sends in the header `User-Agent`. */

/** Version of this package. */
export const VERSION = "1.0.0";

/**
 * Returns the header that names the client. In a browser it returns none: browsers set their own,
 * and the service would have to allow one more header from web pages.
 * @param user_agent `navigator.userAgent`, if the runtime has it
 */
export function userAgentHeader(user_agent: string | undefined): { "User-Agent"?: string } {
  return user_agent?.startsWith("Mozilla/") ? {} : { "User-Agent": `payments-client/${VERSION}` };
}
