/** Turns the tables of test values in docs/errors.md into requests with expected responses. */

import { ERROR_CATALOGUE, type ErrorCode } from "../../../shared/core/errors.ts";
import { codeTexts, tableRows } from "./readme_document.ts";
import type { LocalStart } from "../local/local_start.ts";

/** The tables, by their first header cells. */
export const VALUE_TABLES = ["Card", "Token", "IBAN or wallet", "`outcome`"];

/** A row of a table of test values: the request, and HTTP status, payment status and code. */
interface ValueCase {
  name: string;
  body: Record<string, unknown>;
  expected: string;
}

/** Every row of the tables; the code after "error" decides the HTTP status. */
export function valueCases(errors: string): ValueCase[] {
  return VALUE_TABLES.flatMap((header) =>
    tableRows(errors, header).map((cells) => {
      const [value, result] = [cells[0], cells.at(-1)];
      const name = codeTexts(value!)[0]!;
      const [, error] = /error `(\w+)`/.exec(result!) ?? [];
      const [status, code = ""] = result!.startsWith("no payment")
        ? ["none", error]
        : codeTexts(result!);
      const http = error === undefined ? 201 : ERROR_CATALOGUE[error as ErrorCode].status;
      return { name, body: bodyOf(header, name), expected: `${http} ${status} ${code}`.trim() };
    })
  );
}

function bodyOf(header: string, value: string): Record<string, unknown> {
  if (header === "Card") {
    const cvc = value.startsWith("37") ? "1234" : "123";
    return { card: { number: value, exp_month: 12, exp_year: 2034, cvc } };
  }
  if (header === "Token") return { card: { token: value } };
  if (header === "`outcome`") return { outcome: value };
  return value.startsWith("0x") ? { wallet: value } : { iban: value };
}

/** Creates a payment and returns the response in the form of a table row. */
export async function createValue(
  product: LocalStart,
  body: Record<string, unknown>,
): Promise<string> {
  const sent = { amount: 1000, currency: "EUR", ...body };
  const response = await product.call("POST", "/api-v1-payments/v1/payments", sent);
  // deno-lint-ignore no-explicit-any
  const { error, ...created } = response.body as any;
  const payment = error?.payment ?? created;
  const code = error?.code ?? payment.failure_code ?? "";
  return `${response.status} ${payment.status ?? "none"} ${code}`.trim();
}
