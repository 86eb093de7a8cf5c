/** The pages of the shop, as HTML. */

const STYLE = `:root { color-scheme: light dark; background: canvas; color: canvastext }
html { font: 1.1rem/1.5 system-ui, sans-serif }
body { max-width: 34rem; margin: 3rem auto; padding: 0 1rem }
button { display: block; font: inherit; margin: .5rem 0; padding: .4rem 1.2rem }
a { padding: .2rem 0 }`;

/** The texts of the states of an order. */
const TEXTS = {
  open: "We wait for your payment.",
  waiting: "Your bank asks you to approve the payment.",
  processing: "Your bank has not responded yet. We will send you a mail.",
  authorized: "Thank you. We charge your card when the order ships.",
  paid: "Thank you. Your order is paid.",
  declined: "Your payment was declined, and nothing was charged.",
  failed: "The payment failed. You can order again.",
  cancelled: "The payment is cancelled, and nothing was charged.",
  disputed: "Your bank has asked for the money back.",
};

/** The statuses that change soon. Their page loads itself again. */
const CHANGES_SOON = ["open", "waiting", "processing"];
/** The statuses in which the payer can pay, by another method too. */
const PAYABLE = ["open", "waiting", "declined"];

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

/** The state of the order, with the way to its checkout until it is paid. */
export function orderPage(order) {
  const title = `${order.product}, ${price(order)}`;
  const parts = [`<p role="status">${TEXTS[order.status]}</p>`];
  if (PAYABLE.includes(order.status)) {
    parts.push(`<p><a href="${escape(order.checkout_url)}">Pay</a></p>`);
  }
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
