/**
 * Error messages are for people. The test makes a mistake in each field of each operation, and in
 * headers, paths and bodies. The page messages.md shows the messages, so that a reviewer can read
 * them as a user would. `UPDATE_MESSAGES=1` writes it again. It leaves out those for a missing
 * field and for null: they have the words of the field's other messages.
 */

import assert from "node:assert/strict";
import { generateApiKey } from "../../shared/core/api_key.ts";
import { ADDRESSES } from "../../tools/generate/openapi/operations.ts";
import { APPROVED_CARD, type TestResponse, type TestService } from "../support/service/service.ts";
import {
  card,
  paymentIn,
  PAYMENTS,
  SANDBOX,
  serviceCase,
} from "../support/service/service_case.ts";
import { wrongBodies, wrongQueries, type WrongValue } from "../support/http/wrong_values.ts";

const PAGE = new URL("messages.md", import.meta.url);
/** Words of the validator and of programmers. No message may contain them. */
const JARGON =
  /\b(expected|received|invalid_type|invalid input|int|regex|nan|undefined|union|string|boolean|enum|schema|zod|parse|payload|invalid)\b/i;
/** The message for a missing field or for null, with the words for the field. */
const ABSENT = /^"[^"]+" (?:is required|cannot be null): (leave it out, or )?send (.+)$/;
/** The end of a message about the length of a text. errors_test.ts has it. */
const COUNT = /: it (is empty|has \d+)$/;
/** The field, the values of an enumeration, and other quoted words of a message. */
const VALUES = /"[^"]*"(?:, "[^"]*")*(?: (?:or|and) "[^"]*")?/g;
/** The maximum length of a message. */
const LONGEST = 230;

/** A mistake, and its message. */
interface Line {
  mistake: string;
  message: string;
}

type Make = (service: TestService) => Promise<TestResponse>;
type Mistakes = [title: string, mistakes: [mistake: string, make: Make][]];

const TRANSFERS = "/api-v1-payments/v1/transfers";
const ENDPOINTS = "/api-v1-payments/v1/webhook_endpoints";
const UNKNOWN = `pay_${"0".repeat(26)}`;
const WALLET = "0x000000000000000000000000000000000000dEaD";

/** A create with this body. A text is sent as it is. */
function creating(body: Record<string, unknown> | string): [string, Make] {
  const shown = typeof body === "string" ? body : JSON.stringify(body);
  return [
    shown.length > 100 ? `${shown.slice(0, 100)}…` : shown,
    ({ call }) => call("POST", PAYMENTS, { body }),
  ];
}

function paying(body: Record<string, unknown>): [string, Make] {
  return [JSON.stringify(body), ({ pay }) => pay(body)];
}

function refunding(body: Record<string, unknown>): [string, Make] {
  return [JSON.stringify(body), async (service) => {
    const { id } = await paymentIn(service, "completed");
    return service.call("POST", `${PAYMENTS}/${id}/refund`, { body });
  }];
}

function capturing(body: Record<string, unknown>): [string, Make] {
  return [`the capture ${JSON.stringify(body)} of 1000`, async (service) => {
    const { id } = await paymentIn(service, "authorized");
    return service.call("POST", `${PAYMENTS}/${id}/capture`, { body });
  }];
}

function transferring(destination: unknown, currency = "EUR"): [string, Make] {
  return [
    JSON.stringify({ destination, currency }),
    ({ call }) => call("POST", TRANSFERS, { body: { amount: 100, currency, destination } }),
  ];
}

function asking(method: string, path: string): [string, Make] {
  return [`${method} ${path}`, ({ call }) => call(method, path)];
}

function hooking(url: string): [string, Make] {
  const body = { url };
  return [url, ({ call }) => call("POST", ENDPOINTS, { body })];
}

/** A read of a new inbox, or of another endpoint. `MINE` stands for its id without the prefix. */
function reading(
  query: string,
  shown: string,
  endpoint: Record<string, unknown> = { delivery: "inbox" },
): [string, Make] {
  return [shown, async ({ call }) => {
    const { body: { id } } = await call("POST", ENDPOINTS, { body: endpoint });
    const sent = query.replace("MINE", id.slice("whe_".length));
    const response = await call("GET", `${ENDPOINTS}/${id}/inbox?${sent}`);
    await call("DELETE", `${ENDPOINTS}/${id}`);
    return response;
  }];
}

function recovering(body: Record<string, unknown>): [string, Make] {
  return [`the recovery ${JSON.stringify(body)}`, async ({ call }) => {
    const { body: { id } } = await call("POST", ENDPOINTS, { body: { delivery: "inbox" } });
    const response = await call("POST", `${ENDPOINTS}/${id}/recover`, { body });
    await call("DELETE", `${ENDPOINTS}/${id}`);
    return response;
  }];
}

const EVM = "0x52908400098527886E0F7030069857D2E4169EE7";

/**
 * Requests with a fault that no schema describes, by topic. Each has one fault. The examples of
 * docs/openapi.json have one of each code.
 */
const OTHER_MISTAKES: readonly Mistakes[] = [
  ["Amounts", [
    creating({ amount: 19.99, currency: "EUR" }),
    creating({ amount: "1999", currency: "EUR" }),
    creating({ amount: 19.99, currency: "JPY" }),
    creating({ amount: 19.9951, currency: "KWD" }),
    creating({ amount: 1.5, currency: "USDC" }),
    creating({ amount: 0.001, currency: "EUR" }),
    creating('{"amount": 10.0, "currency": "EUR"}'),
    creating('{"amount": 1e3, "currency": "EUR"}'),
    creating({ amount: -1.5, currency: "EUR" }),
    creating({ amount: 0, currency: "JPY" }),
    creating({ amount: 1_000_000_000_000, currency: "KWD" }),
    creating({ amount: 19.99 }),
    creating({ currency: "EUR" }),
    creating({ currency: "JPY" }),
    creating({ amount: 1, amount_minor: 2, currency: "EUR" }),
    creating('{"amount": 12345678901234567890, "currency": "EUR"}'),
    refunding({ amount: 1001 }),
    capturing({ amount: 1001 }),
  ]],
  ["Instruments", [
    paying({ card: { ...APPROVED_CARD, number: "4111 1111 1111 1111" } }),
    paying(card({ exp_year: 2020 })),
    paying(card({ cvc: "1234" })),
    [
      '{"card": …} with a live key',
      ({ pay, live }) => pay({ card: APPROVED_CARD }, { key: live.text }),
    ],
    [
      '{"return_url": "http://localhost/"} with a live key',
      ({ pay, live }) => pay({ return_url: "http://localhost/" }, { key: live.text }),
    ],
    [
      '{"outcome": "success"} with a live key',
      ({ pay, live }) => pay({ outcome: "success" }, { key: live.text }),
    ],
    paying({ card: APPROVED_CARD, iban: "DE89370400440532013000" }),
    paying({ card: APPROVED_CARD, method_kind: "sepa" }),
    paying({ capability: "card_payment", method_kind: "sepa" }),
    paying({ card: {} }),
    paying({ return_url: "http://shop.example/return" }),
    paying({ card: { token: "pm_card_unknown" } }),
    paying({ card: { ...APPROVED_CARD, token: "pm_card_visa" } }),
    paying({ iban: "DE89370400440532013000", capture: "manual" }),
    paying({ outcome: "refunded", capture: "manual" }),
    paying({ iban: "DE89370400440532013001" }),
    paying({ iban: "DE89370400440532013000", currency: "USD", method_kind: "sepa" }),
    paying({ card: APPROVED_CARD, currency: "USDC" }),
    paying({ wallet: EVM.replace("E0F7", "e0f7") }),
    paying({ wallet: `0x${"0".repeat(40)}` }),
    paying({ wallet: { address: WALLET, asset: "USDT" }, currency: "USDC" }),
    paying({ wallet: { address: EVM, network: "solana" } }),
    paying({ customer: { email: "a@example.com" }, payer: { email: "b@example.com" } }),
    paying({ description: "paid with 4242 4242 4242 4242" }),
    transferring({ iban: "DE89370400440532013000", wallet: WALLET }),
    transferring({ iban: "DE00" }),
    transferring({ iban: "GB82WEST12345698765432" }, "USDC"),
  ]],
  ["Webhook endpoints", [
    ...[
      "ftp://example.com/",
      "https://",
      "https://user:secret@example.com/",
      "https://example.com/#top",
      "https://example.com:25/",
      "https://exa mple.com/",
      "https://127.0.0.1:54321/",
    ].map(hooking),
    [
      "https://localhost/ with a live key",
      ({ call, live }) =>
        call("POST", ENDPOINTS, {
          body: { url: "https://localhost/" },
          key: live.text,
        }),
    ],
    [
      "a URL for an inbox",
      ({ call }) =>
        call("POST", ENDPOINTS, {
          body: { delivery: "inbox", url: "https://example.com/webhooks" },
        }),
    ],
    reading("", "the inbox of an endpoint with a URL", { url: "https://example.com/webhooks" }),
    reading("after=inb_00000000000000000000000000_1", "a cursor of another inbox"),
    reading("after=inb_MINE_9", "a cursor beyond the newest delivery"),
    recovering({ since: "2099-01-01T00:00:00Z" }),
    recovering({ since: "2020-01-01T00:00:00Z" }),
    ["the trigger of an unknown payment", async ({ call }) => {
      const { body } = await call("POST", ENDPOINTS, {
        body: { url: "http://127.0.0.1:4343/", events: ["ping"] },
      });
      return call("POST", `${SANDBOX}/webhooks/trigger`, {
        body: { endpoint_id: body.id, event: "ping", payment_id: UNKNOWN },
      });
    }],
  ]],
  ["Bodies", [
    creating('{"amount": 1999 "currency": "EUR"}'),
    creating("[1999]"),
    ["no body", ({ call }) => call("POST", PAYMENTS)],
    ["Content-Encoding: gzip", ({ pay }) => pay({}, { headers: { "Content-Encoding": "gzip" } })],
  ]],
  ["Headers and queries", [
    [
      "Idempotency-Key: of 300 characters",
      ({ pay }) => pay({}, { idempotency_key: "x".repeat(300) }),
    ],
    ["Idempotency-Key: two words", ({ pay }) => pay({}, { idempotency_key: "two words" })],
    [
      "Idempotency-Key: 4242424242424242",
      ({ pay }) => pay({}, { idempotency_key: "4242424242424242" }),
    ],
    asking("GET", `${PAYMENTS}?limit=5&limit=6`),
    asking("GET", `${PAYMENTS}?reference=%00`),
    asking("GET", `${PAYMENTS}?reference=4242424242424242`),
    asking("GET", `${PAYMENTS}?starting_after=${UNKNOWN}`),
    asking(
      "GET",
      `/api-v1-payments/v1/ledger_entries?payment_id=${UNKNOWN}&transfer_id=${
        UNKNOWN.replace("pay", "tr")
      }`,
    ),
  ]],
  ["Paths", [
    asking("GET", `/api-v1-payments/payments/${UNKNOWN}/`),
    asking("GET", "/api-v1-payments/v1/charges"),
    asking("GET", "/api-v1-payments/openapi.json"),
    asking("GET", SANDBOX),
    asking("DELETE", PAYMENTS),
    asking("GET", `${PAYMENTS}/1001`),
    asking("GET", `/api-v1-payments/v1/events/${UNKNOWN}`),
  ]],
  ["Keys", [
    ["an unknown key", ({ call }) => call("GET", PAYMENTS, { key: generateApiKey("test") })],
    [
      "the internal route without its token",
      ({ call }) => call("POST", "/api-v1-payments/internal/relay"),
    ],
    [
      "a live key from a browser",
      ({ pay, live }) => pay({}, { key: live.text, headers: { Origin: "http://localhost:3000" } }),
    ],
    [
      "a live key for another key",
      ({ call, live }) =>
        call("POST", "/api-v1-payments/v1/api_keys", { body: { name: "x" }, key: live.text }),
    ],
    ["a key that expires in the past", ({ call }) =>
      call("POST", "/api-v1-payments/v1/api_keys", {
        body: { name: "x", expires_at: "2020-01-01T00:00:00Z" },
      })],
  ]],
  ["Moves", [
    ["an advance of a declined payment", async (service) => {
      const { id } = await paymentIn(service, "declined");
      return service.call("POST", `${SANDBOX}/payments/${id}/advance`, {
        body: { to: "completed" },
      });
    }],
    ["a capture of a completed payment", async (service) => {
      const { id } = await paymentIn(service, "completed");
      return service.call("POST", `${PAYMENTS}/${id}/capture`);
    }],
    ["a refund beside a pending refund of the whole", async (service) => {
      const { body } = await service.pay({ card: APPROVED_CARD, settlement: "manual" });
      await service.call("POST", `${PAYMENTS}/${body.id}/refund`);
      return service.call("POST", `${PAYMENTS}/${body.id}/refund`);
    }],
    ["a refund of a payment that only saves", async (service) => {
      const { body } = await service.pay({
        ...{ amount: 0, card: { token: "pm_card_visa" }, save: "on_session" },
        ...{ customer: { id: "u1", email: "a@b.example" }, return_url: "https://shop.example" },
      });
      return service.call("POST", `${PAYMENTS}/${body.id}/refund`);
    }],
    ["an advance of a completed refund", async (service) => {
      const { id } = await paymentIn(service, "completed");
      const { body } = await service.call("POST", `${PAYMENTS}/${id}/refund`);
      return service.call("POST", `${SANDBOX}/refunds/${body.id}/advance`, {
        body: { to: "pending" },
      });
    }],
  ]],
];

serviceCase("messages of errors name the fault and the value to send", async (_, service) => {
  const sections: [title: string, lines: Line[]][] = [["Fields", await fieldLines(service)]];
  for (const [title, mistakes] of OTHER_MISTAKES) {
    const by_message = new Map<string, string>();
    for (const [mistake, make] of mistakes) {
      const message = judge(await make(service), mistake);
      const others = by_message.get(message);
      by_message.set(message, others ? `${others}\n${mistake}` : mistake);
    }
    sections.push([title, [...by_message].map(([message, mistake]) => ({ mistake, message }))]);
  }
  const page = render(sections);
  if (Deno.env.get("UPDATE_MESSAGES")) await Deno.writeTextFile(PAGE, page);
  const committed = await Deno.readTextFile(PAGE);
  assert.equal(page, committed, "read the new messages, then write them: UPDATE_MESSAGES=1");
});

/** The messages of each field of each operation. Those of equal words are one, with its fields. */
async function fieldLines(service: TestService): Promise<Line[]> {
  /** By wording: the mistakes and the message of the first field, and the names of all. */
  const wordings = new Map<string, Line & { names: Set<string> }>();
  for (const { operation, path, alias_of } of ADDRESSES) {
    if (alias_of !== null) continue;
    const cases = operation.method === "GET"
      ? wrongQueries(operation.query)
      : wrongBodies(operation.body);
    const refused: { wrong: WrongValue; message: string }[] = [];
    for (const wrong of cases) {
      const response = await send(service, operation.method, path, wrong);
      const message = judge(response, `${path} ${wrong.path}: ${wrong.shown}`);
      refused.push({ wrong, message });
    }
    for (const [field, of_field] of Map.groupBy(refused, ({ wrong }) => wrong.path)) {
      const shown = of_field.filter((one) => !isAbsent(one.wrong, one.message, of_field));
      const wordingOf = ({ message }: { message: string }) =>
        message.replace(COUNT, "").replace(VALUES, '"…"').replace(/\d+/g, "…");
      for (const [wording, same] of Map.groupBy(shown, wordingOf)) {
        const mistake = [...new Set(same.map(({ wrong }) => wrong.shown))].join(", ");
        const first = {
          mistake,
          message: same[0]!.message.replace(COUNT, ""),
          names: new Set<string>(),
        };
        wordings.set(wording, wordings.get(wording) ?? first).get(wording)!.names.add(field);
      }
    }
  }
  return [...wordings.values()].map(({ mistake, message, names }) => ({
    mistake: `${[...names].join(", ")}: ${mistake}`,
    message,
  }));
}

/** Whether a message is for a missing field or for null. Asserts that the others have its words. */
function isAbsent(
  { shown }: WrongValue,
  message: string,
  of_field: { wrong: WrongValue; message: string }[],
): boolean {
  const [, may_miss, words] = ABSENT.exec(message) ?? [];
  if (words === undefined) return false;
  const is_required = of_field.some(({ wrong }) => wrong.shown === "missing");
  if (shown === "null") assert.equal(may_miss === undefined, is_required, message);
  return of_field.some((other) => other.message.includes(`must be ${words}`));
}

function send(
  service: TestService,
  method: string,
  path: string,
  { value }: WrongValue,
): Promise<TestResponse> {
  const url = path.replace("{id}", `pay_${"0".repeat(26)}`);
  if (method === "GET") {
    return service.call(method, `${url}?${new URLSearchParams(value as Record<string, string>)}`);
  }
  return service.call(method, url, { body: value });
}

/** The message of a response. Asserts that the response is an error in plain words. */
function judge({ status, body, text }: TestResponse, at: string): string {
  assert.ok(status >= 400, `${at} is accepted: ${text}`);
  const { code, message, param } = body.error;
  assert.doesNotMatch(message, JARGON, at);
  assert.match(message, /^[A-Z"].+[^.]$/, at);
  assert.ok(message.length <= LONGEST, `${at}: ${message.length} characters: ${message}`);
  if (code === "invalid_parameter" && /^"/.test(message)) {
    assert.ok(message.startsWith(`"${param}"`), `${at} names another field than ${param}`);
  }
  return message;
}

function render(sections: [title: string, lines: Line[]][]): string {
  return [
    "# Messages of errors",
    "",
    "This page lists wrong requests, and below each the message of its error. Each field of each",
    "operation is wrong once, but not missing and not null: those messages have the same words. Fields",
    "whose messages differ only in numbers and quoted words are together, with the mistakes and the",
    "message of the first: their schemas have the others. Other mistakes follow. `messages_test.ts`",
    "writes and checks the page.",
    ...sections.flatMap(([title, lines]) => [
      "",
      `## ${title}`,
      "",
      "```text",
      lines.map(({ mistake, message }) => `${mistake}\n    ${message}`).join("\n"),
      "```",
    ]),
    "",
  ].join("\n");
}
