/**
 * Keeps an isolate alive when the driver loses a connection. On Deno 2.1.4, the language level of
 * the edge runtime, postgres.js 3.4.9 cannot cancel a scheduled write when the socket closes. The
 * write then throws outside of every promise, which would end the isolate and all its requests. The
 * driver itself fails the statements of that connection (ADR 0007).
 */

/** Matches the message of the error and the first line of its stack. */
const LOST_WRITE = /^[^\n]*\n\s*at nextWrite \([^\n]*\bpostgres\b[^\n]*connection\.js/;

let is_listening = false;

/** Installs a listener that ignores this error. Further calls do nothing. */
export function outliveLostWrites(): void {
  if (is_listening) return;
  is_listening = true;
  globalThis.addEventListener("error", (event) => {
    const { error } = event as ErrorEvent;
    if (error instanceof TypeError && LOST_WRITE.test(error.stack ?? "")) event.preventDefault();
  });
}
