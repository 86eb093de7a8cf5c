/** The card with which commands pay. */

/** The number of the test card that is always approved. */
export const APPROVED_CARD = "4242424242424242";
const CVC = "123";
/** Test cards take any expiry in the future. */
const YEARS_AHEAD = 5;

/** Returns the test card of a number. */
export function testCard(number: string) {
  return { number, exp_month: 12, exp_year: new Date().getFullYear() + YEARS_AHEAD, cvc: CVC };
}
