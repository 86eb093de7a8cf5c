/** Writes the statuses of payments into the lists of SQL files, from the rules of each status. */

import { PAYMENT_STATUSES } from "../../shared/core/vocabulary.ts";
import { isCapturable, isOpenDeposit } from "../../shared/domain/payments/lifecycle.ts";
import { STATUSES } from "../../shared/domain/payment_statuses.ts";
import type { PaymentStatus } from "../../shared/schema/payment.ts";

const isOpen = (status: PaymentStatus) => STATUSES[status].result === null;

/** The lists, by the comment before their names: `in (/* open *\/ 'pending', …)`. */
const LISTS: Readonly<Record<string, (status: PaymentStatus) => boolean>> = {
  open: isOpen,
  "waits for money": (status) => isOpenDeposit({ status }),
  "waits for the payer": (status) => isOpen(status) && !isCapturable({ status }),
  "waits for its capture": (status) => isCapturable({ status }),
  paid: (status) => STATUSES[status].result === "paid",
};

/**
 * Returns the SQL with the statuses in its lists.
 * @throws {Error} if there is no list, or an unknown one
 */
export function replaceStatusLists(sql: string): string {
  const text = sql.replaceAll(/\/\* ([\w ]+) \*\/ '[^)\]]*/g, (_, name: string) => {
    const holds = LISTS[name];
    if (holds === undefined) throw new Error(`there is no list of statuses "${name}"`);
    const names = PAYMENT_STATUSES.filter(holds).map((status) => `'${status}'`);
    return `/* ${name} */ ${names.join(", ")}`;
  });
  if (!text.includes("/* ")) throw new Error("the lists of statuses are missing");
  return text;
}
