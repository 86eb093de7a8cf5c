// Starts the shop with the settings of the environment. The README says where they come from.
import process from "node:process";
import { PaymentsClient } from "@payments-api/client";
import { createShop } from "./shop.js";

const port = Number(process.env.PORT ?? 3000);
const client = new PaymentsClient(); // reads PAYMENTS_BASE_URL and PAYMENTS_API_KEY
const shop = createShop({
  client,
  webhookSecret: setting("WEBHOOK_SECRET"),
  publicUrl: process.env.PUBLIC_URL ?? `http://127.0.0.1:${port}`,
  adminToken: setting("ADMIN_TOKEN"),
});
// A service without a page for payers is found now, and not by the first payer.
const checkout = await client.checkouts.create({ amount: 100, currency: "EUR" });
await client.checkouts.cancel(checkout.id);
if (checkout.url === null) {
  throw new Error("The payments service has no page for payers: its operator sets CHECKOUT_URL");
}
shop.listen(port, "127.0.0.1", () => console.log(`The shop is at http://127.0.0.1:${port}`));

function setting(name) {
  const value = process.env[name];
  if (!value) throw new Error(`Set ${name}: the README says how`);
  return value;
}
