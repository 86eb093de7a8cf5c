/** The lists and tables of docs/contract.md agree with the schemas and limits of the code. */

import assert from "node:assert/strict";
import { STABLECOINS } from "../../shared/core/currency.ts";
import {
  FINAL_PAYMENT_STATUSES,
  METHOD_KINDS,
  NETWORKS,
  OUTCOMES,
  REFUND_REASONS,
  SCOPES,
  TRANSFER_STATUSES,
} from "../../shared/core/vocabulary.ts";
import { DISABLED_REASONS } from "../../shared/schema/webhook.ts";
import {
  ListDisputesQuery,
  ListLedgerEntriesQuery,
  ListPaymentsQuery,
  ListRefundsQuery,
  ListTransfersQuery,
} from "../../shared/schema/list.ts";
import { LEDGER_ACCOUNTS } from "../../shared/schema/ledger.ts";
import * as limits from "../../shared/schema/limits.ts";
import { Payment } from "../../shared/schema/payment.ts";
import { Refund } from "../../shared/schema/refund.ts";
import { ListRequestsQuery } from "../../shared/schema/request.ts";
import { SandboxReset } from "../../shared/schema/service.ts";
import {
  DeliveryAttempt,
  ListEventsQuery,
  ListWebhookDeliveriesQuery,
} from "../../shared/schema/webhook.ts";
import { codeTexts, tableRows } from "../support/documents/readme_document.ts";
import { numberedSection } from "../support/documents/markdown.ts";
import { readProjectFile } from "../support/documents/project_files.ts";

const page = await readProjectFile("docs/contract.md");
const section = (number: string) => numberedSection(page, number)!.replace(/\s+/g, " ");

Deno.test("docs/contract.md lists the members of a payment in their order", () => {
  const [, listed = ""] = /### Object (.*?) - Times/.exec(section("2"))!;
  const shown = codeTexts(listed).map((text) => text.split(":")[0]);
  assert.deepEqual(shown, Object.keys(Payment.shape));
});

Deno.test("docs/contract.md lists the members of a refund in their order", () => {
  const [, listed = ""] = /returns 201 with the refund: (.*?)\. More/.exec(section("3"))!;
  const shown = codeTexts(listed).map((text) => text.split(":")[0]);
  assert.deepEqual(shown, Object.keys(Refund.shape));
});

Deno.test("docs/contract.md lists reasons, outcomes, scopes and the parts of a reset", () => {
  assert.ok(section("3").includes(REFUND_REASONS.join(" | ")));
  const outcomes = tableRows(page, "Field").find(([field]) => field === "`outcome`")![1]!;
  assert.deepEqual(codeTexts(outcomes), [...OUTCOMES]);
  const [, scopes = ""] = /Scopes: (.*?)\. A key/.exec(section("5"))!;
  assert.deepEqual(codeTexts(scopes), [...SCOPES]);
  const counted = Object.keys(SandboxReset.shape.deleted.shape).join(", ");
  assert.ok(section("5").includes(`deleted: {${counted}}`));
  for (const reason of DISABLED_REASONS) assert.ok(section("4").includes(`\`${reason}\``), reason);
});

Deno.test("docs/contract.md lists method kinds, networks and assets", () => {
  const rule = (name: string) => tableRows(page, "Field").find(([it]) => it!.includes(name))![1]!;
  const kinds = METHOD_KINDS.map((kind) => `\`${kind}_payment\`/\`${kind}\``).join(", ");
  assert.ok(rule("`capability`").startsWith(`${kinds}.`));
  const wallet = rule("`wallet`");
  assert.ok(wallet.includes(`Networks: ${NETWORKS.join(", ")}. Assets: ${STABLECOINS.join(", ")}`));
});

Deno.test("docs/contract.md lists final statuses, statuses of transfers and accounts", () => {
  const [, final = ""] = /Final statuses are (.*?)\./.exec(section("2"))!;
  assert.deepEqual(codeTexts(final), [...FINAL_PAYMENT_STATUSES]);
  const [, transfer = ""] = /A transfer is (.*?),? and its/.exec(section("3"))!;
  assert.deepEqual(codeTexts(transfer), [...TRANSFER_STATUSES]);
  const moved = tableRows(page, "Change").flatMap(([, ...sides]) => sides.flatMap(codeTexts));
  assert.deepEqual([...new Set(moved)].sort(), [...LEDGER_ACCOUNTS].sort());
});

Deno.test("docs/contract.md lists the errors of an attempt", () => {
  const shown = tableRows(page, "`error`").flatMap(([cell]) => codeTexts(cell!));
  assert.deepEqual(shown, [...DeliveryAttempt.shape.error.unwrap().options]);
});

/** The filters of each list are the members of its query without those of paging. */
const FILTERS: Record<string, { shape: Record<string, unknown> }> = {
  payments: ListPaymentsQuery,
  refunds: ListRefundsQuery,
  disputes: ListDisputesQuery,
  transfers: ListTransfersQuery,
  "ledger entries": ListLedgerEntriesQuery,
  events: ListEventsQuery,
  deliveries: ListWebhookDeliveriesQuery,
  requests: ListRequestsQuery,
};

Deno.test("docs/contract.md lists the filters of every list", () => {
  const shown = tableRows(page, "List").map((
    [list, filters],
  ) => [list, codeTexts(filters!).sort()]);
  const expected = Object.entries(FILTERS).map(([list, { shape }]) => [
    list,
    Object.keys(shape).filter((name) => name !== "limit" && name !== "starting_after").sort(),
  ]);
  assert.deepEqual(shown, expected);
});

Deno.test("docs/contract.md states the limits of the code", () => {
  const fields = (name: string) =>
    tableRows(page, "Field").find(([field]) => field!.includes(name))![1]!;
  const grouped = String(limits.MAX_AMOUNT_MINOR).replace(/(?<=\d)(?=(\d{3})+$)/g, " ");
  assert.ok(fields("`amount`").includes(grouped));
  assert.ok(
    fields("`reference`").includes(`${limits.MAX_DESCRIPTION} and ${limits.MAX_REFERENCE}`),
  );
  for (
    const limit of [
      limits.MAX_METADATA_ENTRIES,
      limits.MAX_METADATA_KEY,
      limits.MAX_METADATA_VALUE,
    ]
  ) assert.match(fields("`metadata`"), new RegExp(`\\b${limit}\\b`));
  assert.ok(section("5").includes(`1 to ${limits.MAX_IDEMPOTENCY_KEY} visible`));
  assert.ok(section("5").includes(`1 to ${limits.MAX_PAGE}, default ${limits.DEFAULT_PAGE}`));
});
