/** The page of the shop to which a payer comes back. */

/** Adds the parameter `payment_id`, and of a checkout `checkout_id`, to the query of a URL. */
export function withPaymentId(
  url: string,
  { id, checkout_id }: { id: string; checkout_id: string | null },
): string {
  const back = new URL(url);
  const added = `payment_id=${id}${checkout_id === null ? "" : `&checkout_id=${checkout_id}`}`;
  // `searchParams` would write the merchant's own parameters again, in another encoding.
  back.search += `${back.search === "" ? "?" : "&"}${added}`;
  return back.href;
}
