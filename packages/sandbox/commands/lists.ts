/** The commands that print a page of a list, newest first. */

import type { Page, PaymentsClient } from "../../client/mod.ts";
import { type Command, type Option, textOf } from "../command.ts";
import { PAGE_OPTIONS, pageOf, printPage } from "../output.ts";
import { checkoutText, instrumentText, paymentText } from "../resource_text.ts";
import { oneLine } from "../terminal_text.ts";
import { serviceCommand } from "./service_command.ts";

/** An option that filters a list: the parameter of the query, the name of its value, a phrase. */
type Filter = readonly [param: string, value: string, help: string];

interface Listing<Item> extends Pick<Command, "name" | "summary" | "examples"> {
  /** By the name of the option. The API checks every value and names the field at fault. */
  filters?: Readonly<Record<string, Filter>>;
  list: (client: PaymentsClient, params: object) => PromiseLike<Page<Item>>;
  lineOf: (item: Item) => string;
}

function listCommand<Item>({ filters = {}, list, lineOf, ...named }: Listing<Item>): Command {
  const options = Object.entries(filters).map((
    [name, [, value, help]],
  ): [string, Option] => [name, { value, help }]);
  return serviceCommand({
    ...named,
    options: { ...Object.fromEntries(options), ...PAGE_OPTIONS },
    begin(values) {
      const given = Object.entries(filters).map(([name, [param]]) => [param, textOf(values, name)]);
      const params = { ...Object.fromEntries(given), ...pageOf(values) };
      return (client) => list(client, params);
    },
    print: (page, values, surroundings) => printPage(page, lineOf, values, surroundings),
  });
}

export const PAYMENTS_LIST = listCommand({
  name: "payments list",
  summary: "List payments, newest first",
  filters: {
    status: ["status", "STATUS", "only this status, such as completed"],
    currency: ["currency", "CODE", "only this currency"],
    "method-kind": ["method_kind", "KIND", "only this kind, such as sepa"],
    reference: ["reference", "TEXT", "only your own reference"],
    customer: ["customer", "ADDRESS", "only this e-mail address"],
    "customer-id": ["customer_id", "ID", "only your own id of the customer"],
    "created-after": ["created_after", "TIME", "such as 2026-01-31T09:00:00Z"],
    "created-before": ["created_before", "TIME", "such as 2026-02-28T09:00:00Z"],
  },
  examples: ["payments list", "payments list --status declined --limit 100 --json"],
  list: ({ payments }, params) => payments.list(params),
  lineOf(payment) {
    const { created_at, reference } = payment;
    const shown = [paymentText({ ...payment, next_action: null }), created_at];
    return [...shown, ...(reference === null ? [] : [oneLine(reference)])].join("  ");
  },
});

export const CHECKOUTS_LIST = listCommand({
  name: "checkouts list",
  summary: "List checkouts and links, newest first",
  filters: {
    status: ["status", "STATUS", "only this status, such as open"],
    reference: ["reference", "TEXT", "only your own reference"],
    customer: ["customer_id", "ID", "only your own id of the customer"],
  },
  examples: ["checkouts list --status open", "checkouts list --reference order-7 --json"],
  list: ({ checkouts }, params) => checkouts.list(params),
  lineOf: (checkout) => checkoutText({ ...checkout, url: null }),
});

export const INSTRUMENTS_LIST = listCommand({
  name: "instruments list",
  summary: "List saved cards and mandates, newest first",
  filters: {
    customer: ["customer_id", "ID", "only your own id of the customer"],
    status: ["status", "STATUS", "only this status, such as active"],
    "method-kind": ["method_kind", "KIND", "only card or sepa"],
  },
  examples: ["instruments list --customer u1", "instruments list --status active --json"],
  list: ({ instruments }, params) => instruments.list(params),
  lineOf: instrumentText,
});

export const EVENTS_LIST = listCommand({
  name: "events list",
  summary: "List events, newest first",
  filters: {
    type: ["type", "TYPE", "only this type, such as payment.completed"],
    payment: ["payment_id", "ID", "only those of this payment, pay_…"],
    transfer: ["transfer_id", "ID", "only those of this transfer, tr_…"],
  },
  examples: ["events list", "events list --type payment.refunded --json"],
  list: ({ events }, params) => events.list(params),
  lineOf: ({ id, type, data, created_at }) => [id, type, data.object.id, created_at].join("  "),
});

export const ENDPOINTS_LIST = listCommand({
  name: "endpoints list",
  summary: "List webhook endpoints, newest first",
  examples: ["endpoints list", "endpoints list --json"],
  list: ({ webhookEndpoints }, params) => webhookEndpoints.list(params),
  lineOf({ id, status, failing, disabled_reason, url, events }) {
    const condition = failing ? "failing" : disabled_reason;
    const shown = condition === null ? status : `${status} (${condition})`;
    return [id, shown, url ?? "inbox", events.join(",")].join("  ");
  },
});
