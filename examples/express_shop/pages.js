/** The pages of the shop, as HTML. */

import { PAYABLE_AGAIN } from "./order_book.js";

/**
 * Tokens of test cards. With a live key, the provider's form takes the card in the browser and
 * gives the page a token.
 */
const TEST_CARDS = {
  pm_card_visa: "Visa: accepted",
  pm_card_authenticationRequired: "Visa with 3-D Secure",
  pm_card_chargeDeclined: "Visa: declined",
  pm_card_chargeDeclinedInsufficientFunds: "Visa: no funds",
};

const STYLE = `:root { color-scheme: light dark; background: canvas; color: canvastext }
html { font: 1.1rem/1.5 system-ui, sans-serif }
body { max-width: 34rem; margin: 3rem auto; padding: 0 1rem }
label, select, button { display: block; font: inherit; margin: .5rem 0 }
select { width: 100% } button { padding: .4rem 1.2rem } a { padding: .2rem 0 }`;

/** The texts of an order whose payment has begun. */
const TEXTS = {
  open: "We wait for the confirmation of your payment.",
  waiting: "Your bank asks you to approve the payment.",
  processing: "Your bank has not responded yet. We will send you a mail.",
  authorized: "Thank you. We charge your card when the order ships.",
  paid: "Thank you. Your order is paid.",
  declined: "Your card was declined, and nothing was charged.",
  failed: "The payment failed, and nothing was charged.",
  cancelled: "The order is cancelled.",
  disputed: "Your bank has asked for the money back.",
};

/** The statuses that change soon. Their page loads itself again. */
const CHANGES_SOON = ["open", "waiting", "processing"];

/** The products, each with a button that opens an order. */
export function productsPage(products) {
  const forms = [...products].map(([id, product]) =>
    `<h2>${escape(product.name)}</h2>
<form method="post" action="/orders">
<p>${price(product)}</p>
<button name="product" value="${escape(id)}">Buy the ${escape(product.name)}</button>
</form>`
  );
  return page("Shop", forms.join("\n"));
}

/** The order: the form for the card first, and then the state of its payment. */
export function orderPage(order) {
  const title = `${order.product}, ${price(order)}`;
  if (order.payment_id === null) return page(title, cardForm(order.id));
  const parts = [`<p role="status">${TEXTS[order.status]}</p>`];
  if (order.bank_url !== null) {
    parts.push(`<p><a href="${escape(order.bank_url)}">Go to your bank</a></p>`);
  }
  if (PAYABLE_AGAIN.includes(order.status)) parts.push(cardForm(order.id));
  if (CHANGES_SOON.includes(order.status)) {
    parts.push("<script>setTimeout(() => location.reload(), 1000)</script>");
  }
  if (order.refunded > 0) {
    parts.push(`<p>We gave ${price({ ...order, amount: order.refunded })} back.</p>`);
  }
  parts.push('<p><a href="/">Back to the shop</a></p>');
  return page(title, parts.join("\n"));
}

/** A page with one sentence. */
export function messagePage(text) {
  return page("Shop", `<p>${escape(text)}</p><p><a href="/">Back to the shop</a></p>`);
}

function cardForm(id) {
  const options = Object.entries(TEST_CARDS).map(([token, text]) =>
    `<option value="${token}">${escape(text)}</option>`
  );
  return `<form method="post" action="/orders/${encodeURIComponent(id)}/pay">
<label for="token">Card</label>
<select id="token" name="token">${options.join("")}</select>
<button>Pay</button>
</form>`;
}

function page(title, content) {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${escape(title)}</title>
<style>${STYLE}</style>
<main><h1>${escape(title)}</h1>
${content}
</main>
</html>`;
}

function price({ amount, currency }) {
  // Both products cost euros, which have two decimals.
  return `${(amount / 100).toFixed(2)} ${currency}`;
}

/** Returns the text with HTML's own characters replaced. */
function escape(text) {
  return String(text).replace(/[&<>"']/g, (one) => `&#${one.charCodeAt(0)};`);
}
