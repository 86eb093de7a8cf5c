/**
 * The lists and tables of docs/contract.md agree with the schemas, rules and limits of the code,
 * and sentences of it and of other documents list the rails for which `RAILS` says so, and no
 * others.
 */

import assert from "node:assert/strict";
import { STABLECOINS } from "../../shared/core/currency.ts";
import {
  CAPTURE_METHODS,
  DELIVERY_STATUSES,
  EVENT_TYPES,
  FINAL_PAYMENT_STATUSES,
  METHOD_KINDS,
  NETWORKS,
  OUTCOMES,
  PAYMENT_STATUSES,
  REFUND_REASONS,
  SCOPES,
  TRANSFER_STATUSES,
} from "../../shared/core/vocabulary.ts";
import { deriveEndpointSecret } from "../../shared/core/webhook_signature.ts";
import { nextStatuses, settlesAtOnce } from "../../shared/domain/payments/lifecycle.ts";
import { type Rail, railNames, RAILS } from "../../shared/domain/rails.ts";
import type { Standing } from "../../shared/domain/payment_statuses.ts";
import { makeAttempt } from "../../shared/domain/webhooks/attempt.ts";
import { LIVE_DELAYS_MS, TEST_DELAYS_MS } from "../../shared/domain/webhooks/retry_schedule.ts";
import { PAYMENTS_FUNCTION_ROUTES } from "../../shared/functions/payments_function.ts";
import { COSTLY_READS, LARGE_BODIES, PLACE_BOUNDS } from "../../shared/jobs/places.ts";
import { SANDBOX_ROUTES } from "../../shared/sandbox/sandbox_routes.ts";
import {
  LEDGER_ACCOUNTS,
  ListDisputesQuery,
  ListInstrumentsQuery,
  ListLedgerEntriesQuery,
  ListPaymentsQuery,
  ListRefundsQuery,
  ListTransfersQuery,
} from "../../shared/schema/list.ts";
import * as limits from "../../shared/schema/limits.ts";
import { ListCheckoutsQuery } from "../../shared/schema/checkout_body.ts";
import { Payment } from "../../shared/schema/payment.ts";
import { Refund } from "../../shared/schema/refund.ts";
import { ListRequestsQuery } from "../../shared/schema/request_query.ts";
import { SandboxReset } from "../../shared/schema/service.ts";
import { DeliveryAttempt, DISABLED_REASONS } from "../../shared/schema/webhook.ts";
import { ListEventsQuery, ListWebhookDeliveriesQuery } from "../../shared/schema/webhook_body.ts";
import { codeTexts, tableRows } from "../support/documents/readme_document.ts";
import { readProjectFile } from "../support/documents/project_files.ts";

const PAGE = await readProjectFile("docs/contract.md");
const ARCHITECTURE = await readProjectFile("docs/architecture.md");
const UNITS_MS: Record<string, number> = { s: 1_000, min: 60_000, h: 3_600_000 };

/** The text of a numbered section, on one line. */
function section(number: string): string {
  const text = PAGE.split(/^## /m).find((part) => part.startsWith(`${number}. `))!;
  return text.replace(/\s+/g, " ");
}

/** The words in backticks of a part of a section. */
const words = (number: string, part: RegExp) => codeTexts(part.exec(section(number))![1]!);
/** The rule of a field of a request. */
const rule = (name: string) =>
  tableRows(PAGE, "Field").find(([field]) => field!.includes(name))![1]!;
const members = (texts: string[]) => texts.map((text) => text.split(":")[0]!);
const sorted = (texts: readonly string[]) => [...new Set(texts)].sort();

/** Event types, which the page shortens to `.completed` after the first of a resource. */
const event_types = tableRows(PAGE, "Event type").flatMap(([cell]) => {
  const texts = codeTexts(cell!);
  const [resource] = texts[0]!.split(".");
  return texts.map((text) => text.startsWith(".") ? resource + text : text);
});

/** Operations, of which a cell names a method once for all paths that follow. */
const operations = tableRows(PAGE, "Function").flatMap(([, paths]) => {
  let method = "";
  return codeTexts(paths!).map((text) => {
    const [path, verb = method] = text.split(" ").reverse();
    method = verb;
    return `${method} ${path}`;
  });
});
const served = [...PAYMENTS_FUNCTION_ROUTES, ...SANDBOX_ROUTES]
  .map(({ method, paths }) => `${method} ${paths[0].replace(/:(\w+)/g, "{$1}")}`);

const moves = tableRows(PAGE, "From").flatMap(([from, , to]) => {
  const next = codeTexts(to!).filter((text) => PAYMENT_STATUSES.some((one) => one === text));
  return codeTexts(from!).flatMap((status) => next.map((one) => [status, one]));
}).filter(([from, to]) => from !== to).map(String);

/**
 * Payments that wait for money at an address, and captured payments of 1000 in every status, with
 * and without a refund of 400.
 */
function* standings(): Generator<Standing> {
  for (const status of PAYMENT_STATUSES) {
    for (const method_kind of METHOD_KINDS) {
      for (const capture of CAPTURE_METHODS) {
        const payment = { status, method_kind, capture, amount_refunding: 0 };
        for (const amount of [0, 400]) {
          yield { ...payment, amount_captured: 1000, amount_refunded: amount };
          const nothing = { amount_captured: 0, amount_refunded: 0 };
          yield { ...payment, ...nothing, amount_minor: 1000, amount_received: amount };
        }
      }
    }
  }
}
const possible_moves = [...standings()].flatMap((standing) =>
  nextStatuses(standing).map((to) => ({ standing, from: standing.status, to }))
);
const possible = possible_moves.map(({ from, to }) => `${from},${to}`);

/** Whether the rail has such payments: captured later, and with money that is final later. */
function isOfRail({ method_kind, capture, amount_received }: Standing): boolean {
  return (capture === "automatic" || RAILS[method_kind].has_manual_capture) &&
    (amount_received === undefined || !settlesAtOnce({ method_kind }));
}

/** The rails of a move if not all have it, or the request or event that makes it. */
function labelOf(from: Standing["status"], to: Standing["status"]): string {
  const kinds = METHOD_KINDS.filter((kind) =>
    possible_moves.some((move) =>
      move.from === from && move.to === to && move.standing.method_kind === kind &&
      isOfRail(move.standing)
    )
  );
  if (kinds.length < METHOD_KINDS.length) return `: ${kinds.join(", ")} only`;
  if (to === "cancelled") return ": cancel";
  if (from === "chargeback") return ": dispute won";
  if (to.endsWith("refunded")) return ": refund";
  return from === "authorized" && to === "completed" ? ": capture" : "";
}

/** The arrows of the diagram in docs/architecture.md. `[*]` is the beginning and the end. */
const [, diagram] = /^stateDiagram-v2\n([^]*?)^```/m.exec(ARCHITECTURE)!;
const drawn = diagram!.trim().split(/\n\s*/);
const arrows = possible_moves.map(({ from, to }) => `${from} --> ${to}${labelOf(from, to)}`);
const ends = PAYMENT_STATUSES.filter((status) =>
  !possible.some((it) => it.startsWith(`${status},`))
)
  .map((status) => `${status} --> [*]`);

const { sandboxes, live, long_waits, page_waits, key_checks, keyless } = PLACE_BOUNDS;
const turns = ({ waiting_of_owner }: typeof COSTLY_READS | typeof LARGE_BODIES) => ({
  of_owner: waiting_of_owner,
  in_all: "–",
});
const PLACES = [
  ["with a test key", "account", sandboxes],
  ["with a live key", "account", live],
  [
    "of these: waits for the end of a `delay` ([faults](#faults)) for deliveries of an inbox or " +
    "for [changes](#changes), or gets a transcript, until its end",
    "account",
    long_waits,
  ],
  ["of these: waits for changes", "account", page_waits],
  ["of these: waits for a list of a costly filter", "account", turns(COSTLY_READS)],
  [
    "of these: waits for its turn with a body above 4 096 bytes",
    "account",
    turns(LARGE_BODIES),
  ],
  ["with a key that is new to the instance", "network", key_checks],
  ["without an API key, such as a notification", "network", keyless],
] as const;

/** The headers of a delivery. Only an attempt with a declared fault has Sandbox-Fault. */
const sent: string[] = [];
const endpoint_id = "whe_1m7wxh34391014jsnn4dyqy6x0";
const source = { master_secret: "m".repeat(32), endpoint_id, version: 1, salt: "00".repeat(16) };
await makeAttempt(
  {
    event_id: "evt_1m7wxh46cemfph749zf3qhmsb1",
    body: "{}",
    url: "http://127.0.0.1:4343/",
    number: 1,
    secrets: [deriveEndpointSecret(source)],
    allow_private: true,
    livemode: false,
    signed_ms: 0,
    fault: "delay",
    traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
  },
  0,
  ({ headers }) => {
    sent.push(...Object.keys(headers));
    return Promise.resolve({ outcome: "timeout", duration_ms: 0 });
  },
);

const waits = tableRows(PAGE, "Key").map(([mode, waits]) => {
  const delays = [...waits!.matchAll(/\b(\d+) (s|min|h)\b/g)];
  return [mode, delays.map(([, count, unit]) => Number(count) * UNITS_MS[unit!]!)];
});

/** The filters of each list are the members of its query without those of paging. */
const QUERIES: Record<string, { shape: Record<string, unknown> }> = {
  payments: ListPaymentsQuery,
  refunds: ListRefundsQuery,
  disputes: ListDisputesQuery,
  instruments: ListInstrumentsQuery,
  checkouts: ListCheckoutsQuery,
  transfers: ListTransfersQuery,
  "ledger entries": ListLedgerEntriesQuery,
  events: ListEventsQuery,
  deliveries: ListWebhookDeliveriesQuery,
  requests: ListRequestsQuery,
};
const filters = tableRows(PAGE, "List").map(([list, cell]) => [list, codeTexts(cell!).sort()]);
const filters_of_queries = Object.entries(QUERIES).map(([list, { shape }]) => [
  list,
  Object.keys(shape).filter((name) => !["limit", "starting_after", "include"].includes(name))
    .sort(),
]);

/** The lists of the page, and those of the code. */
const LISTS: [name: string, shown: readonly unknown[], expected: readonly unknown[]][] = [
  [
    "the members of a payment in their order",
    members(words("2", /### Object (.*?) - Times/)),
    Object.keys(Payment.shape),
  ],
  [
    "the members of a refund in their order",
    members(words("3", /returns 201 with the refund: (.*?)\. More/)),
    Object.keys(Refund.shape),
  ],
  ["outcomes", codeTexts(rule("`outcome`")), OUTCOMES],
  ["scopes", words("5", /Scopes: (.*?)\. A key/), SCOPES],
  ["final statuses", words("2", /Final statuses are (.*?)\./), FINAL_PAYMENT_STATUSES],
  ["statuses of transfers", words("3", /A transfer is (.*?),? and its/), TRANSFER_STATUSES],
  [
    "ledger accounts",
    sorted(tableRows(PAGE, "Change").flatMap(([, ...sides]) => sides.flatMap(codeTexts))),
    sorted(LEDGER_ACCOUNTS),
  ],
  ["every move of a payment and no other", sorted(moves), sorted(possible)],
  [
    "the moves of the diagram in docs/architecture.md",
    drawn.toSorted(),
    sorted(["[*] --> pending", ...arrows, ...ends]),
  ],
  [
    "the places of requests",
    tableRows(PAGE, "The request"),
    PLACES.map(([request, owner, { of_owner, in_all }]) =>
      [request, owner, of_owner, in_all].map(String)
    ),
  ],
  ["every operation and no other", operations.sort(), served.sort()],
  ["the filters of every list", filters, filters_of_queries],
  [
    "the headers of a delivery",
    tableRows(PAGE, "Header").flatMap(([cell]) => codeTexts(cell!)).sort(),
    sent.sort(),
  ],
  ["every event type and no other", event_types.sort(), EVENT_TYPES.toSorted()],
  ["the waits between attempts", waits, [["test", TEST_DELAYS_MS], ["live", LIVE_DELAYS_MS]]],
  [
    "every status of a delivery",
    tableRows(PAGE, "Delivery").map(([cell]) => codeTexts(cell!)[0]),
    DELIVERY_STATUSES,
  ],
  [
    "the errors of an attempt",
    tableRows(PAGE, "`error`").flatMap(([cell]) => codeTexts(cell!)),
    DeliveryAttempt.shape.error.unwrap().options,
  ],
];

for (const [name, shown, expected] of LISTS) {
  Deno.test(`docs/contract.md has ${name}`, () => {
    assert.deepEqual(shown, [...expected]);
  });
}

const counted = Object.keys(SandboxReset.shape.deleted.shape).join(", ");
const kinds = METHOD_KINDS.map((kind) => `\`${kind}_payment\`/\`${kind}\``).join(", ");
const largest = String(limits.MAX_AMOUNT_MINOR).replace(/(?<=\d)(?=(\d{3})+$)/g, " ");
const { MAX_METADATA_ENTRIES, MAX_METADATA_KEY, MAX_METADATA_VALUE } = limits;

/** Texts of the page, and the words and numbers of the code that they have. */
const TEXTS: [name: string, text: string, parts: readonly (string | RegExp)[]][] = [
  ["reasons of refunds", section("3"), [REFUND_REASONS.join(" | ")]],
  ["parts of a reset", section("5"), [`deleted: {${counted}}`]],
  ["reasons of a disabled endpoint", section("4"), DISABLED_REASONS.map((it) => `\`${it}\``)],
  ["method kinds", rule("`capability`"), [`${kinds}.`]],
  [
    "networks and assets",
    rule("`wallet`"),
    [`Networks: ${NETWORKS.join(", ")}. Assets: ${STABLECOINS.join(", ")}`],
  ],
  ["the largest amount", rule("`amount`"), [largest]],
  [
    "the longest texts",
    rule("`reference`"),
    [`${limits.MAX_DESCRIPTION} and ${limits.MAX_REFERENCE}`],
  ],
  [
    "the limits of metadata",
    rule("`metadata`"),
    [MAX_METADATA_ENTRIES, MAX_METADATA_KEY, MAX_METADATA_VALUE].map((limit) =>
      new RegExp(`\\b${limit}\\b`)
    ),
  ],
  ["the longest idempotency key", section("5"), [`1 to ${limits.MAX_IDEMPOTENCY_KEY} visible`]],
  [
    "the limits of a page",
    section("5"),
    [`1 to ${limits.MAX_PAGE}, default ${limits.DEFAULT_PAGE}`],
  ],
];

for (const [name, text, parts] of TEXTS) {
  Deno.test(`docs/contract.md states ${name}`, () => {
    for (const part of parts) {
      if (typeof part === "string") assert.ok(text.includes(part), part);
      else assert.match(text, part);
    }
  });
}

const SENDS_TO = {
  account: "the payer sends a bank transfer",
  address: "the payer sends to an address",
};
const REFUND_TO: Record<Rail["refund_to"], string> = {
  payer: "back to where the money came from",
  account: "back, or to the IBAN in `destination`",
  wallet: "back, or to the wallet in `destination`",
};

Deno.test("docs/contract.md has each rail with what it can do", () => {
  const rows = METHOD_KINDS.map((kind) => {
    const rail: Rail = RAILS[kind];
    const { is_for_stablecoins, only_currency, payer_sends, refund_to } = rail;
    const abilities = [
      ...rail.has_manual_capture ? ["captured later"] : [],
      ...rail.collects ? ["collected under a mandate"] : [],
      ...rail.returns === null ? [] : ["returned by a bank"],
    ];
    return [
      `\`${kind}\``,
      is_for_stablecoins
        ? "stablecoins; with a test key all"
        : only_currency ?? "all but stablecoins",
      payer_sends ? SENDS_TO[payer_sends.to] : "`pending` until an advance",
      REFUND_TO[refund_to],
      abilities.join(", "),
    ];
  });
  assert.deepEqual(tableRows(PAGE, "`method_kind`"), rows);
});

const all = () => true;
const takesTime = ({ takes_time }: Rail) => takes_time;
const payerSends = ({ payer_sends }: Rail) => payer_sends !== null;
const returns = ({ returns }: Rail) => returns !== null;
const returnsNothing = ({ returns }: Rail) => returns === null;
const refundsToAccount = ({ refund_to }: Rail) => refund_to === "account";

/** Each row: a document, its sentence with … in place of the list, and the rails in the list. */
const SENTENCES: [path: string, sentence: string, holds: (rail: Rail) => boolean][] = [
  ["README.md", "payments by … over HTTP", all],
  ["CHANGELOG.md", "**Payments** by …: create", all],
  ["packages/sandbox/README.md", "payments by …, a ledger", all],
  ["tools/generate/openapi/introduction.md", "payments by …, keeps", all],
  ["docs/contract.md", "Manual leaves a … payment `pending`", takesTime],
  ["docs/contract.md", "A create by … that has neither", payerSends],
  ["docs/contract.md", "take the whole amount of a payment by … back", returns],
  ["docs/contract.md", "for a payment by …, it is `bank_return`", returns],
  ["docs/contract.md", "for a payment by …, it is 400", returnsNothing],
  ["docs/contract.md", "and a refund of a payment by …, take", refundsToAccount],
  ["docs/contract.md", "a refund by … without a `destination`", refundsToAccount],
];

for (const [path, sentence, holds] of SENTENCES) {
  Deno.test(`${path} has each rail in: ${sentence}`, async () => {
    const text = (await readProjectFile(path)).replace(/\s+/g, " ").toLowerCase();
    const [expected, other] = (["disjunction", "conjunction"] as const)
      .map((type) => sentence.replace("…", railNames(holds, type)).toLowerCase());
    assert.ok(text.includes(expected!) || text.includes(other!), expected);
  });
}
