/** The text that `deno task start` prints when the service is ready. */

import { keyLink, referenceKeyLink } from "../../../packages/sandbox/key_link.ts";
import type { Credentials } from "../data_dir/credentials.ts";

interface BannerValues extends Credentials {
  /** Path of credentials.json, relative if the file is inside the current folder. */
  credentials_path: string;
  /** Path of the log file, or null if log lines go to standard output. */
  log_path: string | null;
  /** Host and name of the user's own database, or null for the embedded one. */
  database: string | null;
}

/** Returns the banner, which ends with a newline. `colour` adds ANSI escapes. */
export function renderBanner(values: BannerValues, colour: boolean): string {
  const paint = (code: number, text: string) => colour ? `\x1b[${code}m${text}\x1b[0m` : text;
  const row = (label: string, text: string) => `  ${paint(2, label.padEnd(12))}${text}`;
  return [
    "",
    `  ${paint(1, "Payments API with sandbox")} is ready. Test keys move no money.`,
    "",
    row("Base URL", paint(36, values.base_url)),
    row("Test key", paint(36, values.test_key)),
    row("Console", paint(36, keyLink(values.base_url, values.test_key))),
    row("Documents", paint(36, new URL("/docs", values.base_url).href)),
    row("Reference", paint(36, referenceKeyLink(values.base_url, values.test_key))),
    row("Credentials", values.credentials_path),
    ...(values.database === null ? [] : [row("Database", values.database)]),
    ...(values.log_path === null ? [] : [row("Log", values.log_path)]),
    "",
    "  Make a payment with the card that is always approved:",
    "",
    renderCurl(values),
    "",
    `  ${paint(2, "Ctrl-C stops everything; the data stays.")}`,
    "",
    "",
  ].join("\n");
}

/** A command for a POSIX shell that creates a payment. Its lines have no indent, to be pasted. */
function renderCurl({ base_url, test_key }: Credentials): string {
  const body = {
    amount: 1999,
    currency: "EUR",
    capability: "card_payment",
    customer: { email: "ada@example.com" },
    card: { number: "4242424242424242", exp_month: 12, exp_year: 2030, cvc: "123" },
  };
  return [
    `curl ${base_url}/api-v1-payments/v1/payments \\`,
    `  -H "Authorization: Bearer ${test_key}" \\`,
    `  -H "Content-Type: application/json" \\`,
    `  -d '${JSON.stringify(body)}'`,
  ].join("\n");
}
