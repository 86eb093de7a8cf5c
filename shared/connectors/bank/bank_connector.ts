/**
 * The connector for the merchant's own bank account (architecture §7). Each method loads its module
 * at its first use, so an installation without accounts at banks starts without this code
 * (ADR 0009).
 */

import type { Connector, OperationPort } from "../../domain/providers/connector.ts";
import type { BankStore } from "../../store/bank_store.ts";

export function bankConnector(store: BankStore): Connector {
  const send: OperationPort["send"] = async (account, operation) => {
    const { replyTo } = await import("./bank_operations.ts");
    return await replyTo(account, operation, store);
  };
  const port: OperationPort = {
    send,
    sync: send,
    find: () => Promise.resolve({ absent: true }),
  };
  return {
    name: "bank",
    needs_secret: false,
    changeable_settings: [
      "holder_name",
      "creditor_id",
      "vop",
      "charges",
      "cut_off",
      "own_business",
      "return_charge_minor",
      "prenotification_days",
      "expires_after_days",
    ],
    async checkSettings(settings, method_kinds) {
      const { checkBankSettings } = await import("./bank_settings.ts");
      return checkBankSettings(settings, method_kinds);
    },
    async takes(settings, method) {
      const { readBankSettings } = await import("./bank_settings.ts");
      return method !== "sepa_debit" || readBankSettings(settings).creditor_id !== null;
    },
    async test({ settings }) {
      const { readBankSettings } = await import("./bank_settings.ts");
      const { iban, bic, currency } = readBankSettings(settings);
      return `${iban} at ${bic} takes ${currency}. A bank has no test call`;
    },
    charges: port,
    payouts: port,
    notifications: null,
    feed: {
      poll: (_account, cursor) => Promise.resolve({ provider_events: [], cursor, more: false }),
      totals: () => Promise.resolve({ totals: [] }),
    },
  };
}
