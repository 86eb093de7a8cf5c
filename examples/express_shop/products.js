/** The products, by their id in the form. The shop decides the price, never the browser. */
export const PRODUCTS = new Map([
  ["print", { name: "Print", amount: 2500, currency: "EUR", ships_later: false }],
  // Made to order: the card is charged when the frame ships, at most 7 days later.
  ["frame", { name: "Frame", amount: 4000, currency: "EUR", ships_later: true }],
]);
