/** Timeouts of an attempt to deliver a webhook, apart from the sender, which loads later. */

/**
 * Timeouts until the connection is open (DNS, TCP, TLS), and for the whole attempt (contract §4).
 */
export const WEBHOOK_TIMEOUTS = { connect_ms: 5_000, total_ms: 15_000 } as const;
