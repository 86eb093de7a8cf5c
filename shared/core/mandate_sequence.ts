/**
 * The sequence of collections by one mandate of a SEPA direct debit (EPC016-06, AT-21). A payer
 * signs a mandate for one collection or for many. The collections of the second kind are `first`,
 * `recurring` and `final`, and since 2016 the first one can also be `recurring`.
 */

/** Places of a collection among those of its mandate. */
export const MANDATE_SEQUENCES = ["first", "recurring", "final", "one_off"] as const;

/** The place of a collection among those of its mandate. */
export type MandateSequence = typeof MANDATE_SEQUENCES[number];

/**
 * Returns the reason for which a collection cannot have its place in the sequence, or null.
 *
 * @param earlier the earlier collections of the mandate, oldest first, without those that the bank
 *   rejected before it settled them: they do not count, and a `first` one is repeated as `first`
 */
export function sequenceFault(
  earlier: readonly MandateSequence[],
  next: MandateSequence,
): string | null {
  const last = earlier.at(-1);
  if (last === undefined) return null;
  if (last === "one_off") return "the mandate was for one collection, which has been made";
  if (last === "final") return "the mandate has ended with its final collection";
  if (next === "one_off") return "the mandate already has collections, so it is for many";
  if (next === "first") return "the mandate already has a first collection";
  return null;
}
