/** The page of the shop to which a payer comes back. */

/** Adds the parameter `payment_id` to the query of a URL. */
export function withPaymentId(url: string, payment_id: string): string {
  const back = new URL(url);
  // `searchParams` would write the merchant's own parameters again, in another encoding.
  back.search += `${back.search === "" ? "?" : "&"}payment_id=${payment_id}`;
  return back.href;
}
