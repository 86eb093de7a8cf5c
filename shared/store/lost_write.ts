/**
 * Keeps an isolate alive when the driver loses a connection. On Deno 2.1.4, the language level of the
 * edge runtime, a write of postgres.js 3.4.9 that was due cannot be called off any more when the socket
 * closes; it fails on the socket that is gone, outside of every promise, and would end the isolate
 * with all its requests. The statements of that connection are told by the driver itself.
 */

/** The message, and the first line of the stack below it. */
const LOST_WRITE = /^[^\n]*\n\s*at nextWrite \([^\n]*\bpostgres\b[^\n]*connection\.js/;

let is_listening = false;

/** From now on that one error ends nothing. */
export function outliveLostWrites(): void {
  if (is_listening) return;
  is_listening = true;
  globalThis.addEventListener("error", (event) => {
    const { error } = event as ErrorEvent;
    if (error instanceof TypeError && LOST_WRITE.test(error.stack ?? "")) event.preventDefault();
  });
}
