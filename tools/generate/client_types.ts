/**
 * Writes the module `packages/client/resources.ts`: the types of bodies, responses and lists of
 * values, with the texts of the schemas. The client is a separate package and cannot import
 * `shared/`.
 */

import { spawnSync } from "node:child_process";
import * as z from "zod";
import { STABLECOINS } from "../../shared/core/currency.ts";
import { DECLINE_ADVICE, DECLINE_CODES, ERROR_CATALOGUE } from "../../shared/core/errors.ts";
import * as words from "../../shared/core/vocabulary.ts";
import { CreateFaultBody } from "../../shared/schema/fault.ts";
import { ERROR_CODES, ErrorBody } from "../../shared/schema/error.ts";
import * as payment from "../../shared/schema/payment.ts";
import * as payment_body from "../../shared/schema/payment_body.ts";
import { IbanInput } from "../../shared/schema/bank_account.ts";
import { Refund } from "../../shared/schema/refund.ts";
import { CreateRefundBody } from "../../shared/schema/refund_body.ts";
import { innerOf, isOptional, layersOf, requirementOf } from "../../shared/schema/requirement.ts";
import { Metadata } from "../../shared/schema/values.ts";
import * as webhook from "../../shared/schema/webhook.ts";
import { fieldText } from "./openapi/common_fields.ts";
import { ADDRESSES } from "./openapi/operations.ts";
import { EXPORTED } from "./openapi/schemas.ts";
import { wrapped } from "./wrapped.ts";

/** Columns of a line, as in deno.json. */
const LINE_WIDTH = 100;

/** Bounds that a schema has for every number, and that are no rules of the API. */
const UNBOUNDED = new RegExp(`${Number.MAX_SAFE_INTEGER}|Infinity`);

/** Lists of values that have no schema, or that need a text of their own: text and values. */
const LISTS: Readonly<Record<string, readonly [doc: string, values: readonly string[]]>> = {
  MethodKind: ["The kind of payment method", words.METHOD_KINDS],
  Capability: [
    "The kind of payment method, under its other name: `card_payment` is `card`, and so on",
    payment_body.Capability.options,
  ],
  Outcome: ["A forced result of a sandbox payment. It overrides the instrument", words.OUTCOMES],
  DeclineAdvice: [
    "The next step that helps after a decline. `do_not_retry`: the method will be declined again. " +
    "A newer service may send a value that is not listed here",
    DECLINE_ADVICE,
  ],
  DeclineCode: ["The code of a decline. The error has the payment, which is stored", DECLINE_CODES],
  FailureCode: [
    "The reason why a payment, refund or transfer failed after it was accepted",
    payment.FAILURE_CODES,
  ],
  InstrumentUsage: [
    payment_body.InstrumentUsage.description!,
    words.INSTRUMENT_USAGES,
  ],
  MandateSequence: [
    "The place of a payment among those of its mandate. Nothing follows `final` and `one_off`",
    words.MANDATE_SEQUENCES,
  ],
  Stablecoin: ["The asset of a wallet. Each has 6 decimals: 1500000 is 1.5 USDC", STABLECOINS],
  DisabledReason: [
    "The reason why an endpoint is disabled. `gone`: it returned 410. `failing`: it failed for 5 days",
    webhook.DISABLED_REASONS,
  ],
  AttemptError: [
    "The reason why an attempt got no response",
    webhook.DeliveryAttempt.shape.error.unwrap().options,
  ],
  PaymentEventType: ["An event type that shows a payment", words.PAYMENT_EVENT_TYPES],
  RefundEventType: ["An event type that shows a refund", words.REFUND_EVENT_TYPES],
  DisputeEventType: ["An event type that shows a dispute", words.DISPUTE_EVENT_TYPES],
  TransferEventType: ["An event type that shows a transfer", words.TRANSFER_EVENT_TYPES],
  InstrumentEventType: ["An event type that shows an instrument", words.INSTRUMENT_EVENT_TYPES],
  EndpointEventType: ["An event type that shows a webhook endpoint", words.ENDPOINT_EVENT_TYPES],
  EventPattern: ["A pattern that matches several event types", words.EVENT_PATTERNS],
  RequestFault: [
    "A declared fault of requests. After `server_error_after` and `connection_lost_after` the " +
    "request is done",
    words.FAULTS.request,
  ],
  DeliveryFault: ["A declared fault of webhook deliveries", words.FAULTS.delivery],
  ProviderFault: ["A declared fault of the sandbox's provider", words.FAULTS.provider],
  ProviderOperation: ["An operation of the sandbox's provider", words.PROVIDER_OPERATIONS],
  RequestMethod: ["The method of a request", words.REQUEST_METHODS],
};

/** How the type of a schema differs from its schema. */
interface Form {
  /** The name, if it is not that of the schema with `Input` for `Body` and `Params` for `Query`. */
  name?: string;
  /** The text, if it is not that of the schema. */
  doc?: string;
  without?: readonly string[];
  only?: readonly string[];
  /** Members that are required, although the schema has a rule of its own for them. */
  required?: readonly string[];
  /** Types of members that differ from those of the schema. */
  members?: Readonly<Record<string, string>>;
  /** A second type, with a member that only some responses show: its name, and the member. */
  secret?: readonly [name: string, member: string];
}

const AMOUNTS = ["amount", "amount_minor"];

/** The types that differ from their schemas, by the names of these. */
const FORMS: Readonly<Record<string, Form>> = {
  ShownMetadata: { name: "Metadata", doc: Metadata.description! },
  AddressInput: { name: "PostalAddress" },
  ShownIban: { name: "MaskedIban" },
  ShownWallet: { name: "Wallet" },
  NextAction: {
    doc: "The next step of the payer. A newer service may send a type that is not listed here",
  },
  CreatePaymentBody: {
    name: "PaymentFields",
    doc: `Fields of a new payment. ${payment_body.ABOUT_INSTRUMENTS}`,
    without: AMOUNTS,
  },
  CreateTransferBody: {
    name: "TransferFields",
    doc: "Fields of a new transfer",
    without: AMOUNTS,
  },
  Price: { name: "CheckoutPrice" },
  CreateCheckoutBody: {
    name: "CheckoutFields",
    doc: "Fields of a new checkout",
    without: AMOUNTS,
  },
  Balance: {
    doc: "The balances of all accounts in all currencies. The API returns exact sums. As " +
      "JavaScript numbers, sums above `Number.MAX_SAFE_INTEGER` are rounded",
  },
  CreateWebhookEndpointBody: {
    name: "EndpointFields",
    doc: "The fields of a new endpoint beside its URL",
    without: ["delivery", "url"],
  },
  RotateWebhookSecretBody: { name: "RotateSecretInput" },
  WebhookEndpoint: { secret: ["WebhookEndpointWithSecret", "secret"] },
  RecoverDeliveriesBody: { name: "RecoverInput" },
  Inbox: { name: "InboxPage" },
  ApiKey: { secret: ["ApiKeyWithSecret", "secret"] },
  AdvancePaymentBody: { name: "AdvanceInput" },
  AuthenticatePaymentBody: { name: "AuthenticateInput" },
  TriggerWebhookBody: { name: "TriggerInput" },
  DisposableSandbox: { secret: ["SandboxWithKey", "test_key"] },
  CreateFaultBody: {
    name: "FaultFields",
    doc: "The fields of a new fault beside its kind",
    only: ["times", "delay_ms"],
  },
  Fault: {
    members: {
      fault: "RequestFault | DeliveryFault | ProviderFault",
      where: "RequestConditions & DeliveryConditions & ProviderConditions",
    },
  },
  PaymentTotalsQuery: { members: { span: "number" } },
};

/**
 * Schemas without a type in the client: it has a type or a list of its own for them, or writes them
 * where they are used.
 */
const LEFT_OUT = new Set([
  ...["AccountBalance", "AuthenticateAction", "BankTransferAction", "Capability", "CardInput"],
  ...["CardMethod", "DeclineAdvice", "DispatcherAwake", "EmptyBody", "EmptyQuery", "ErrorBody"],
  ...["EraseByEmailQuery", "EventSubscription", "EventType", "Health", "IbanDestination"],
  ...["IbanMethod", "InstrumentUsage", "ListApiKeysQuery", "ListFaultsQuery"],
  ...["ListPaymentRefundsQuery", "ListSandboxesQuery", "ListWebhookEndpointsQuery", "MethodKind"],
  ...["Outcome", "PriceInput", "Purged", "ReadChangesQuery", "ReadInboxQuery", "RequestSource"],
  ...["SendStablecoinAction", "SepaInstrumentMethod", "ShownCard", "Stablecoin"],
  ...["WalletDestination", "WalletMethod"],
  ...["DisputeEvent", "Event", "InstrumentEvent", "PaymentEvent", "RefundEvent", "TransferEvent"],
  "WebhookEndpointEvent",
]);

const CONDITIONS = objectIn(CreateFaultBody.shape.where);

type NamedType = readonly [name: string, schema: z.ZodType, form?: Form];

/** Types of parts of schemas. */
const PARTS: readonly NamedType[] = [
  ["IbanInput", objectIn(IbanInput), { doc: "A bank account" }],
  ["WalletInput", objectIn(payment_body.WalletInput), { doc: "A wallet" }],
  ["CardNumberInput", payment_body.CardInput, {
    doc: "A card by its number. Test keys only, and only the published test cards",
    without: ["token"],
    required: ["number", "exp_month", "exp_year", "cvc"],
  }],
  ["CardTokenInput", payment_body.CardInput, {
    doc: "A card by its token",
    only: ["token"],
    required: ["token"],
  }],
  ["RefundDestinationInput", objectIn(CreateRefundBody.shape.destination), {
    members: { address: "string | PostalAddress" },
  }],
  ["RefundDestination", Refund.shape.destination.unwrap(), {
    doc: "The wallet or the masked bank account to which a refund goes",
  }],
  ["RequestConditions", CONDITIONS, {
    doc: "Conditions of a fault on requests. A request that has all of these values matches",
    only: words.FAULT_CONDITIONS.request,
  }],
  ["DeliveryConditions", CONDITIONS, {
    doc: "Conditions of a fault on webhook deliveries",
    only: words.FAULT_CONDITIONS.delivery,
  }],
  ["ProviderConditions", CONDITIONS, {
    doc: "Conditions of a fault on calls to the simulated provider",
    only: words.FAULT_CONDITIONS.provider,
  }],
  ["ErrorBody", ErrorBody.shape.error, {
    doc: "The member `error` of the body of an error",
  }],
];

/** The types of bodies, responses, queries and values, with their schemas. */
const TYPES: readonly NamedType[] = [
  ...[...EXPORTED].filter(([name, { def }]) =>
    !LEFT_OUT.has(name) && (["object", "enum", "union"].includes(def.type) || name in FORMS)
  ).map(([exported, schema]): NamedType => {
    const form = FORMS[exported] ?? {};
    const name = exported.replace(/Body$/, "Input").replace(/Query$/, "Params");
    return [form.name ?? name, schema, form];
  }),
  ...PARTS,
];

/** Types that no schema has in this form: text and type. */
const ALIASES: Readonly<Record<string, readonly [doc: string, type: string]>> = {
  ErrorCode: [
    "An error code. A newer service may send a code that is not listed here",
    "keyof typeof ERROR_CODES",
  ],
  ErrorType: ["The type of an error", 'typeof ERROR_CODES[ErrorCode]["type"]'],
  EventType: [
    "The type of an event. A newer service may send a type that is not listed here",
    Object.keys(LISTS).filter((name) => name.endsWith("EventType")).join(" | "),
  ],
  Subscription: [
    "A subscription of an endpoint: an event type, all types of a resource, or all types",
    "EventType | EventPattern",
  ],
  AmountInput: [
    "An amount in minor units, under either of its names. If you send both, they must be equal",
    AMOUNTS.map((name) =>
      `\n| { ${name}: number; ${AMOUNTS.find((other) => other !== name)}?: number | undefined }`
    ).join(""),
  ],
  CardInput: [
    "A card: its token, or with a test key the number of a test card",
    "CardNumberInput | CardTokenInput",
  ],
  CreatePaymentInput: [
    "`POST /v1/payments`. Amounts are integers in minor units: 1999 is 19.99 EUR",
    "PaymentFields & AmountInput",
  ],
  CreateCheckoutInput: [
    "`POST /v1/checkouts`. Amounts are integers in minor units: 1999 is 19.99 EUR",
    "CheckoutFields & AmountInput",
  ],
  CreateTransferInput: [
    "`POST /v1/transfers`. Amounts are integers in minor units: 1050 is 10.50 EUR",
    "TransferFields & AmountInput",
  ],
  CreateWebhookEndpointInput: [
    "`POST /v1/webhook_endpoints`. An endpoint has an `https` URL of a public host, or an inbox. " +
    "The operator can allow other URLs for test keys",
    '({ delivery?: "url" | undefined; url: string } | { delivery: "inbox"; url?: undefined }) & ' +
    "EndpointFields",
  ],
  CreateFaultInput: [
    "`POST /faults`",
    `(${
      words.FAULT_KINDS.map((kind) => {
        const type = kind[0]!.toUpperCase() + kind.slice(1);
        return `\n| { on: "${kind}"; fault: ${type}Fault; where?: ${type}Conditions | undefined }`;
      }).join("")
    }) & FaultFields`,
  ],
};

const HEAD = `/**
 * Types of bodies, responses, queries and lists of values (contract §2 to §7). Times are RFC 3339
 * in UTC, and amounts are integers in minor units of their currency.
 * Written by "deno task generate" from shared/.
 */

/** Parameters of every list. */
export interface ListParams {
  /** Maximum of items of a page, 1 to 100. By default 10; 100 where you iterate over items. */
  limit?: number | undefined;
  /** \`next_cursor\` of the page before, or the id of an item. The page begins after it. */
  starting_after?: string | undefined;
  /** \`total\`: also how many items the list has. */
  include?: "total" | undefined;
}
`;

const NAMES = new Map<z.ZodType, string>([
  ...TYPES.filter(([, , form]) => !form?.only && !form?.required && !form?.without)
    .map(([name, schema]) => [schema, name] as const),
  [Metadata, "Metadata"],
  ...["CardInput", "MethodKind", "Capability", "Outcome", "DeclineAdvice", "Stablecoin"]
    .map((name) => [EXPORTED.get(name)!, name] as const),
]);

const NAMED_LISTS = new Map<string, string>([
  ...Object.entries(LISTS).map(([name, [, values]]) => [values.join(), name] as const),
  ...TYPES.flatMap(([name, schema]) =>
    schema instanceof z.ZodEnum ? [[schema.options.join(), name] as const] : []
  ),
  [ERROR_CODES.join(), "ErrorCode"],
  [[...new Set(ERROR_CODES.map((code) => ERROR_CATALOGUE[code].type))].join(), "ErrorType"],
  [words.EVENT_TYPES.join(), "EventType"],
  [[...words.EVENT_TYPES, ...words.EVENT_PATTERNS].join(), "Subscription"],
  [[...DECLINE_CODES, ...payment.FAILURE_CODES].join(), "DeclineCode | FailureCode"],
]);

/** Returns the module as `deno fmt` formats it. */
export function renderClientTypes(): string {
  const codes = Object.entries(ERROR_CATALOGUE).map(([code, { status, type }]) =>
    `  ${code}: { status: ${status}, type: "${type}" },`
  );
  const parts = [
    HEAD,
    ...TYPES.map(renderType),
    ...Object.entries(ALIASES).map(([name, [doc, type]]) => renderAlias(name, doc, type)),
    ...Object.entries(LISTS).map(([name, [doc, values]]) => renderAlias(name, doc, union(values))),
    "/** The HTTP status and type of every error code of the API. */",
    `export const ERROR_CODES = {\n${codes.join("\n")}\n} as const;\n`,
  ];
  return formatted(parts.join("\n"));
}

function renderAlias(name: string, doc: string, type: string): string {
  return `${docstring(doc, 0)}export type ${name} = ${type};\n`;
}

function renderType([name, schema, form = {}]: typeof TYPES[number]): string {
  const is_list = /^List.*Params$/.test(name);
  const head = docstring(is_list ? addressOf(schema) : form.doc ?? schema.description, 0);
  const inner = layersOf(schema).at(-1)!;
  if (!(inner instanceof z.ZodObject)) {
    return `${head}export type ${name} = ${typeOf(inner, 0, true)};\n`;
  }
  const [full, secret] = form.secret ?? [];
  const [base, inherited = []] = is_list
    ? ["ListParams", ["limit", "starting_after", "include"]]
    : extendedBy(inner) ?? [];
  const left_out = [...form.without ?? [], secret, ...inherited];
  const members = Object.entries(inner.shape as Record<string, z.ZodType>)
    .filter(([member]) => form.only?.includes(member) ?? !left_out.includes(member))
    .map(([member, schema]) => renderMember(member, schema, 1, form));
  const extended = base ? ` extends ${base}` : "";
  const text = `${head}export interface ${name}${extended} {\n${members.join("")}}\n`;
  if (!full) return text;
  const shown = renderMember(secret!, inner.shape[secret!] as z.ZodType, 1, {
    required: [secret!],
  });
  return `${text}\n/** \`${name}\` with its secret, which the API shows only once: store it. */\n` +
    `export interface ${full} extends ${name} {\n${shown}}\n`;
}

/** Returns the resource that this one extends, with the names of its members, if there is one. */
function extendedBy({ shape }: z.ZodObject): readonly [string, string[]] | undefined {
  for (const [schema, name] of NAMES) {
    if (!(schema instanceof z.ZodObject && "object" in schema.shape)) continue;
    const members = Object.entries(schema.shape);
    const is_part = members.every(([member, type]) => shape[member] === type);
    if (is_part && members.length < Object.keys(shape).length) {
      return [name, Object.keys(schema.shape)];
    }
  }
}

/** The method and the path of the operation that has a query. */
function addressOf(query: z.ZodType): string {
  const address = ADDRESSES.find((one) => one.operation.query === query && one.alias_of === null)!;
  return `\`GET ${address.path.replace(/^\/[^/]+/, "")}\``;
}

function renderMember(name: string, schema: z.ZodType, depth: number, form: Form = {}): string {
  const is_optional = !form.required?.includes(name) && isOptional(schema);
  const type = form.members?.[name] ?? typeOf(schema, depth);
  const head = docstring(textOf(name, schema), depth);
  return `${head}${name}${is_optional ? "?" : ""}: ${type}${is_optional ? " | undefined" : ""};\n`;
}

/** Returns the type of a schema. `is_own`: the type of this name itself is written. */
function typeOf(schema: z.ZodType, depth: number, is_own = false): string {
  const name = nameOf(schema);
  if (name && !is_own) return name;
  const type = (inner: unknown) => typeOf(inner as z.ZodType, depth);
  if (schema instanceof z.ZodNullable) return `${type(schema.unwrap())} | null`;
  if (schema instanceof z.ZodEnum) return union(schema.options);
  if (schema instanceof z.ZodLiteral) return union([...schema.values]);
  if (schema instanceof z.ZodArray) {
    const item = type(schema.element);
    return item.includes(" | ") ? `(${item})[]` : `${item}[]`;
  }
  if (schema instanceof z.ZodRecord) return `Record<string, ${type(schema.valueType)}>`;
  if (schema instanceof z.ZodUnion) {
    return [
      ...new Set(
        schema.options.map((option) =>
          `\n${docstring((option as z.ZodType).description, depth)}| ${type(option)}`
        ),
      ),
    ].join("");
  }
  if (schema instanceof z.ZodObject) {
    const members = Object.entries(schema.shape as Record<string, z.ZodType>);
    return `{\n${members.map(([name, it]) => renderMember(name, it, depth + 1)).join("")}}`;
  }
  if (schema instanceof z.ZodPipe && schema.def.out instanceof z.ZodObject) {
    return `string | ${type(schema.def.out)}`;
  }
  const inner = innerOf(schema);
  if (inner) return type(inner);
  const kind = schema.def.type;
  if (["string", "number", "boolean", "unknown"].includes(kind)) return kind;
  throw new Error(`a schema of type ${kind} has no type in the client`);
}

/**
 * Returns the text of a member, with its bounds and its default if the text does not say them. A
 * member whose type has a name has the text of that type.
 */
function textOf(name: string, schema: z.ZodType): string | undefined {
  const layers = layersOf(schema);
  const described = layers.find(({ description }) => description !== undefined);
  const own = described && !NAMES.has(described) ? described.description : undefined;
  const is_named = layers.some((layer) => nameOf(layer) !== undefined);
  const prefix = /^an id that begins with "(\w+)"/.exec(boundsOf(layers))?.[1];
  const text = own === undefined && prefix
    ? `\`${prefix}…\``
    : is_named
    ? own
    : fieldText(name, own);
  return [text, ...rulesOf(layers, text ?? "")].filter(Boolean).join(". ");
}

/** Returns the bounds and the default of a member, if its text does not say them. */
function rulesOf(layers: readonly z.ZodType[], text: string): string[] {
  const bounds = boundsOf(layers);
  const shows_bounds = /^(text of|a whole number (of seconds )?from) /.test(bounds) &&
    !/at most| to \d/.test(text) && !UNBOUNDED.test(bounds);
  const filled = layers.find((layer) => layer instanceof z.ZodDefault);
  return [
    ...shows_bounds ? [bounds[0]!.toUpperCase() + bounds.slice(1)] : [],
    ...filled && !/default/i.test(text)
      ? [`By default \`${JSON.stringify(filled.def.defaultValue)}\``]
      : [],
  ];
}

function boundsOf(layers: readonly z.ZodType[]): string {
  const inner = layers.at(-1);
  const is_bounded = inner instanceof z.ZodString || inner instanceof z.ZodNumber;
  return is_bounded ? requirementOf(layers[0]!) : "";
}

/** Returns the name of the type of a schema, also of one that has another text. */
function nameOf(schema: z.ZodType): string | undefined {
  if (schema instanceof z.ZodEnum) return NAMED_LISTS.get(schema.options.join());
  for (let it: unknown = schema; it; it = (it as z.ZodType)._zod.parent) {
    const name = NAMES.get(it as z.ZodType);
    if (name) return name;
  }
}

/** Returns the object of an input that is an object or its first member as text. */
function objectIn(schema: z.ZodType): z.ZodObject {
  const inner = layersOf(schema).at(-1);
  if (inner instanceof z.ZodObject) return inner;
  throw new Error("not the schema of an object");
}

function union(values: readonly unknown[]): string {
  return values.map((value) => JSON.stringify(value)).join(" | ");
}

/** Returns a comment, wrapped for a depth of indentation. */
function docstring(text: string | undefined, depth: number): string {
  if (!text) return "";
  const sentence = /^`[^`]+`$|[.!?]$/.test(text) ? text : `${text}.`;
  const width = LINE_WIDTH - 2 * depth;
  if (`/** ${sentence} */`.length <= width) return `/** ${sentence} */\n`;
  const lines = wrapped(sentence.split(" "), width - " * ".length).map((line) => ` * ${line}\n`);
  return `/**\n${lines.join("")} */\n`;
}

/** Returns a module as `deno fmt` formats it. */
function formatted(module: string): string {
  const args = ["fmt", "--ext", "ts", "--line-width", `${LINE_WIDTH}`, "-"];
  const { status, stdout } = spawnSync(Deno.execPath(), args, { input: module, encoding: "utf8" });
  if (status !== 0) throw new Error(`deno fmt refuses the module:\n${module}`);
  return stdout;
}
