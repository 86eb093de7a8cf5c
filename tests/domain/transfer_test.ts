/**
 * Transfers (contract §3): refused bodies, the events and movements of each step, and the details of
 * payees that banks ask for. The database compares the amount with the balance.
 */

import assert from "node:assert/strict";
import type { ApiError } from "../../shared/core/errors.ts";
import { checkSpeed, readPayee } from "../../shared/domain/providers/payee.ts";
import { asSent, parseBody } from "../../shared/http/parse_input.ts";
import type { IbanInput, PayeeInput } from "../../shared/schema/bank_account.ts";
import { CreateTransferBody, type Transfer } from "../../shared/schema/transfer.ts";
import type { Change } from "../../shared/store/commit_rows.ts";
import { decideAdvanceTransfer } from "../../shared/sandbox/advance.ts";
import {
  decideCancelTransfer,
  decideTransfer,
  refusalOf,
  requestContext,
  summaryOf,
} from "../support/domain/decided_change.ts";

const IBAN = "FR1420041010050500013M02606";
const BRITISH = "GB29NWBK60161331926819";
const ADDRESS = { line1: "1 High Street", city: "London", postal_code: "SW1", country: "GB" };
const SEPA = { iban: { iban: "DE89 3704 0044 0532 0130 00" } };
const SWIFT = { iban: "GB82 WEST 1234 5698 7654 32" };
const RETURNED = { iban: "DE00 0000 0000 0000 0000 99" };
const DEAD = "0x000000000000000000000000000000000000dEaD";
const WALLET = { wallet: DEAD };
const REVERTED = { wallet: { address: "0x0000000000000000000000000000000000000bad" } };

/** Decides a transfer of 10, by default of EUR cents to an account, as its route does. */
function send(members: Record<string, unknown>, livemode = false): Change {
  const value = { amount: 10, currency: "EUR", destination: SEPA, ...members };
  const read = { value: JSON.parse(JSON.stringify(value)), literals: new Map() };
  try {
    return decideTransfer(parseBody(CreateTransferBody, read), requestContext(livemode));
  } catch (error) {
    throw asSent(error, read);
  }
}

/** Members of the body of a transfer, and the field that is refused. */
const REFUSED: [string, members: Record<string, unknown>, param: string, livemode?: true][] = [
  ["no amount", { amount: undefined }, "amount"],
  ["an amount of 0", { amount: 0 }, "amount"],
  ["two different amounts", { amount_minor: 1 }, "amount_minor"],
  ["an amount beyond the largest", { amount: 1e12 }, "amount"],
  ["an amount beyond the largest of SEPA", { amount: 1e11 }, "amount"],
  ["an unknown currency", { currency: "EUX" }, "currency"],
  ["an unknown currency without an amount", { amount: undefined, currency: "EUX" }, "currency"],
  ["no destination", { destination: undefined }, "destination"],
  ["an empty destination", { destination: {} }, "destination"],
  ["two destinations", { destination: { ...SEPA, ...WALLET } }, "destination"],
  [
    "a malformed IBAN",
    { destination: { iban: "DE89 3704 0044 0532 0130 01" } },
    "destination.iban",
  ],
  ["an invalid IBAN", { destination: { iban: { iban: "hello" } } }, "destination.iban.iban"],
  [
    "the zero address",
    { currency: "USDC", destination: { wallet: `0x${"0".repeat(40)}` } },
    "destination.wallet",
  ],
  [
    "a short address",
    { currency: "USDC", destination: { wallet: "0x1234" } },
    "destination.wallet",
  ],
  ["an address of another network", {
    currency: "USDC",
    destination: { wallet: { address: DEAD.replace(/D$/, "E"), network: "tron" } },
  }, "destination.wallet.address"],
  ["an asset that contradicts", {
    currency: "USDC",
    destination: { wallet: { address: DEAD, asset: "USDT" } },
  }, "destination.wallet.asset"],
  ["a name of a wallet", {
    currency: "USDC",
    destination: { ...WALLET, holder_name: "Ada" },
  }, "destination.holder_name"],
  ["stablecoin to an account", { currency: "USDC" }, "currency"],
  ["an unknown settlement", { settlement: "later" }, "settlement"],
  [
    "a settlement with a live key",
    {
      destination: { iban: IBAN, holder_name: "Ada" },
      settlement: "manual",
    },
    "settlement",
    true,
  ],
  ["a live payee without a name", { destination: { iban: IBAN } }, "destination.holder_name", true],
  ["no address outside the EEA", { destination: { iban: BRITISH } }, "destination.address"],
  ["an address without a city", {
    destination: { iban: BRITISH, address: { country: "GB" } },
  }, "destination.address.city"],
  ["an address without a country", {
    destination: { iban: BRITISH, address: { city: "London" } },
  }, "destination.address.country"],
  ["a long line", {
    destination: { iban: BRITISH, address: { ...ADDRESS, line2: "x".repeat(71) } },
  }, "destination.address.line2"],
  ["instant in dollars", {
    currency: "USD",
    destination: { iban: IBAN },
    speed: "instant",
  }, "speed"],
  ["another speed", { speed: "fast" }, "speed"],
];
for (const [name, members, param, livemode] of REFUSED) {
  Deno.test(`decideTransfer() refuses ${name}: ${param}`, () => {
    assert.equal(refusalOf(() => send(members, livemode)), `invalid_parameter ${param}`);
  });
}
Deno.test("decideTransfer() repeats no account number in a refusal", () => {
  const destination = { iban: "DE89370400440532013001" };
  assert.throws(() => send({ destination }), ({ message }: Error) => !/0532013001/.test(message));
});

const OUT = "transfer available>in_transit 10";
const DONE = "transfer_completed in_transit>external 10";
const BACK = "transfer_reversed in_transit>available 10";
const CAME_BACK = "transfer_returned external>available 10";
const DOLLARS = { currency: "USDC", destination: WALLET };
const MANUAL = { settlement: "manual" };
const to = (holder_name: string) => ({ destination: { iban: IBAN, holder_name } });
const NO_FAILURE = { failure_code: null, return_code: null };

/** A create, its status, events, movements, and further members. */
const CREATED: [
  name: string,
  body: Record<string, unknown>,
  status: string,
  events: string,
  ledger: string[],
  members?: Partial<Transfer>,
][] = [
  ["to SEPA", {}, "completed", "created completed", [OUT, DONE], { speed: "standard" }],
  ["to SWIFT", { destination: SWIFT }, "completed", "created completed", [OUT, DONE]],
  ["to a wallet", DOLLARS, "completed", "created completed", [OUT, DONE], { speed: null }],
  ["that the bank returns", { destination: RETURNED }, "failed", "created failed", [OUT, BACK], {
    failure_code: "bank_return",
    return_code: "R01",
    destination: { type: "iban", iban: { country: "DE", last4: "0099" } },
  }],
  [
    "that is reverted",
    { ...DOLLARS, destination: REVERTED },
    "failed",
    "created failed",
    [OUT, BACK],
    { failure_code: "onchain_reverted", return_code: null },
  ],
  ["with manual settlement", MANUAL, "pending", "created", [OUT], NO_FAILURE],
  ["at once", { speed: "instant" }, "completed", "created completed", [OUT, DONE], {
    speed: "instant",
  }],
  [
    "to an address",
    { destination: { iban: BRITISH, holder_name: "Ada", address: ADDRESS } },
    "completed",
    "created completed",
    [OUT, DONE],
    { payee_check: null },
  ],
  ["to a match", to("Match Ltd"), "completed", "created updated completed", [OUT, DONE], {
    payee_check: "match",
  }],
  ["to no match", to("No match Ltd"), "pending", "created updated", [OUT], {
    payee_check: "no_match",
  }],
  [
    "to a close match",
    { destination: { iban: { iban: IBAN, holder_name: "Close match Ltd" } }, speed: "instant" },
    "pending",
    "created updated",
    [OUT],
    { payee_check: "close_match", speed: "instant" },
  ],
];
for (const [name, body, status, events, ledger, members = {}] of CREATED) {
  Deno.test(`decideTransfer() of a transfer ${name} → ${status}`, () => {
    const change = send(body);
    const transfer = transferIn(change);
    const types = events.split(" ");
    assertSteps(change, types, ledger, 1);
    assert.equal(change.response.status, 201);
    assert.equal(change.response.body, change.transfer!.body);
    assert.deepEqual({ ...transfer, ...members, status, sequence: types.length }, transfer);
    for (const secret of ["Ltd", "Ada", "London", "2004"]) {
      assert.ok(!change.transfer!.body.includes(secret), secret);
    }
    const { destination, completed_at, cancelled_at } = transfer;
    assert.deepEqual([completed_at !== null, cancelled_at], [status === "completed", null]);
    if (!("wallet" in destination)) return;
    const { tx_hash } = destination.wallet;
    if (status === "failed") assert.equal(tx_hash, null);
    else assert.match(tx_hash!, /^0x[0-9a-f]{64}$/);
  });
}

const context = requestContext();
type Status = Transfer["status"];
const advance = (to: Status, return_code?: string) => (transfer: Transfer) =>
  decideAdvanceTransfer(transfer, to, context, return_code);
const cancel = (transfer: Transfer) => decideCancelTransfer(transfer, context);
const PENDING = transferIn(send(MANUAL));
const PAID = transferIn(send({}));

/** A move, its event and movement. */
const MOVES: [
  name: string,
  transfer: Transfer,
  move: (transfer: Transfer) => Change | null,
  status: Status,
  movement: string,
][] = [
  ["a cancel", PENDING, cancel, "cancelled", BACK],
  ["an advance", PENDING, advance("cancelled"), "cancelled", BACK],
  ["an advance", PENDING, advance("completed"), "completed", DONE],
  ["an advance", PENDING, advance("failed"), "failed", BACK],
  ["a return of a completed one", PAID, advance("failed", "AC04"), "failed", CAME_BACK],
];
for (const [name, transfer, move, status, movement] of MOVES) {
  Deno.test(`${name} of a transfer → ${status}: ${movement}`, () => {
    const change = move(transfer)!;
    const moved = transferIn(change);
    assertSteps(change, [status], [movement], transfer.sequence + 1);
    assert.deepEqual(change.expects, { id: transfer.id, sequence: transfer.sequence });
    assert.deepEqual([change.response.status, change.response.body], [200, change.transfer!.body]);
    const at = moved.updated_at;
    assert.deepEqual(
      [moved.status, moved.completed_at, moved.cancelled_at],
      [
        status,
        status === "completed" ? at : transfer.completed_at,
        status === "cancelled" ? at : null,
      ],
    );
    if (status !== "failed") return;
    const return_code = transfer === PAID ? "AC04" : "R01";
    assert.deepEqual([moved.failure_code, moved.return_code], ["bank_return", return_code]);
  });
}

/** [a transfer, its status, the statuses that can follow] */
const ENDED: [Transfer, allowed: Status[]][] = [
  [PAID, ["failed"]],
  [transferIn(send(DOLLARS)), []],
  [transferIn(send({ destination: RETURNED })), []],
  [transferIn(cancel(PENDING)), []],
];
for (const [transfer, allowed] of ENDED) {
  const { status, destination } = transfer;
  Deno.test(`a transfer to a ${destination.type} that is ${status} allows: ${allowed}`, () => {
    const all: Status[] = ["pending", "completed", "failed", "cancelled"];
    const moves = all.filter((to) => to !== status && !allowed.includes(to)).map((to) =>
      advance(to)
    );
    for (const move of [cancel, ...moves]) {
      assert.throws(() => move(transfer), ({ code, details, message }: ApiError) => {
        assert.deepEqual([code, details], ["invalid_state", { current_status: status, allowed }]);
        return message.endsWith(`: the transfer is ${status}`);
      });
    }
    assert.equal(advance(status)(transfer), null);
  });
}
Deno.test("an advance of a transfer to a wallet has no return code", () => {
  const transfer = transferIn(send({ ...DOLLARS, ...MANUAL }));
  assert.equal(
    refusalOf(() => advance("failed", "AC04")(transfer)),
    "invalid_parameter return_code",
  );
});

function transferIn({ transfer }: Change): Transfer {
  return JSON.parse(transfer!.body);
}

/** Asserts the events, which show the transfer, and the movements. */
function assertSteps(change: Change, types: string[], ledger: string[], sequence: number): void {
  const { events, ledger: movements } = summaryOf(change);
  assert.deepEqual(events, types.map((type, i) => `${sequence + i} transfer.${type}`));
  assert.deepEqual(movements, ledger);
}

const CH = "CH9300762011623852957";
const MC = "MC5811222000010123456789030";
const NO = "NO9386011117947";

const read = (payee: Omit<PayeeInput, "iban"> & { iban: string | IbanInput }, options = {}) => {
  const iban = typeof payee.iban === "string" ? { iban: payee.iban } : payee.iban;
  return readPayee({ ...payee, iban }, { currency: "EUR", livemode: false, ...options });
};

/** [name, payee, refused field or null, options] */
const PAYEES: [string, Parameters<typeof read>[0], string | null, object?][] = [
  ["an IBAN alone", { iban: IBAN }, null],
  ["a name", { iban: IBAN, holder_name: "Ada" }, null],
  ["a BIC of the country", { iban: IBAN, bic: "BNPAFRPP" }, null],
  ["a BIC in lower case", { iban: IBAN, bic: "bnpafrppxxx" }, null],
  ["a BIC of another country", { iban: IBAN, bic: "COBADEFF" }, "destination.bic"],
  ["the same in the object", { iban: { iban: IBAN, bic: "COBADEFF" } }, "destination.iban.bic"],
  ["a BIC of Réunion with an IBAN of France", { iban: IBAN, bic: "BNPAREPP" }, null],
  ["a BIC of Monaco with an IBAN of France", { iban: IBAN, bic: "BNPAMCPP" }, null],
  ["a BIC of France with an IBAN of Monaco", { iban: MC, bic: "BNPAFRPP", address: ADDRESS }, null],
  [
    "a BIC of Jersey with an IBAN of Britain",
    { iban: BRITISH, bic: "NWBKJESH", address: ADDRESS },
    null,
  ],
  ["a BIC of Britain with an IBAN of France", { iban: IBAN, bic: "NWBKGB2L" }, "destination.bic"],
  ["the same BIC twice", { iban: { iban: IBAN, bic: "BNPAFRPP" }, bic: "BNPAFRPP" }, null],
  [
    "two BICs",
    { iban: { iban: IBAN, bic: "BNPAFRPP" }, bic: "BNPAFRPPXXX" },
    "destination.bic",
  ],
  [
    "two names",
    { iban: { iban: IBAN, holder_name: "Ada" }, holder_name: "Eve" },
    "destination.holder_name",
  ],
  ["an address in the object", { iban: { iban: BRITISH, address: ADDRESS } }, null],
  ["the same address twice", { iban: { iban: BRITISH, address: ADDRESS }, address: ADDRESS }, null],
  [
    "two addresses",
    { iban: { iban: BRITISH, address: ADDRESS }, address: { ...ADDRESS, city: "Leeds" } },
    "destination.address",
  ],
  ["Norway, which is in the EEA", { iban: NO }, null],
  ["Britain without an address", { iban: BRITISH }, "destination.address"],
  ["Britain with one", { iban: BRITISH, address: ADDRESS }, null],
  ["Switzerland without an address", { iban: CH }, "destination.address"],
  ["Monaco without an address", { iban: MC }, "destination.address"],
  ["a test IBAN of Britain", { iban: "GB82 WEST 1234 5698 7654 32" }, null, { currency: "USD" }],
  ["a live payee without a name", { iban: IBAN }, "destination.holder_name", { livemode: true }],
  ["a live payee", { iban: IBAN, holder_name: "Ada" }, null, { livemode: true }],
  [
    "the same IBAN with a live key",
    { iban: "GB82 WEST 1234 5698 7654 32", holder_name: "Ada" },
    "destination.address",
    { livemode: true, currency: "USD" },
  ],
  ["a wrong IBAN", { iban: `${IBAN}1` }, "destination.iban.iban"],
];
for (const [name, payee, param, options] of PAYEES) {
  Deno.test(`readPayee() ${name}: ${param ?? "taken"}`, () => {
    if (param === null) return void read(payee, options);
    assert.equal(refusalOf(() => read(payee, options)), `invalid_parameter ${param}`);
  });
}

const NAMES: [name: string | undefined, payee_check: string | null][] = [
  [undefined, null],
  ["Ada Lovelace", null],
  ["Match", "match"],
  ["Match Ltd", "match"],
  ["match ltd", "match"],
  ["Matchbox Ltd", null],
  ["No match", "no_match"],
  ["No match Ltd", "no_match"],
  ["no match ltd", "no_match"],
  ["Close match Ltd", "close_match"],
  ["No matchbox Ltd", null],
  ["Ada No match", null],
];
for (const [holder_name, payee_check] of NAMES) {
  Deno.test(`readPayee() payee named ${holder_name}: ${payee_check}`, () => {
    const payee = { iban: IBAN, ...(holder_name !== undefined && { holder_name }) };
    assert.equal(read(payee).payee_check, payee_check);
    if (payee_check) assert.equal(read(payee, { livemode: true }).payee_check, null);
  });
}

Deno.test("readPayee() keeps only country and last four characters", () => {
  const { method } = read({ iban: BRITISH, holder_name: "Ada", bic: "NWBKGB2L", address: ADDRESS });
  assert.deepEqual(method && "iban" in method && method.iban, { country: "GB", last4: "6819" });
});

Deno.test("checkSpeed() instant is for SEPA only", () => {
  for (const speed of [undefined, "standard"]) checkSpeed(speed, "swift");
  checkSpeed("instant", "sepa");
  for (const kind of ["card", "swift", "stablecoin"] as const) {
    assert.equal(refusalOf(() => checkSpeed("instant", kind)), "invalid_parameter speed");
  }
});
