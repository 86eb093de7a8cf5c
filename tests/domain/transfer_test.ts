/**
 * Transfers (contract §3): refused bodies, the events and movements of each step, and the details
 * of payees that banks ask for. The database compares the amount with the balance.
 */

import assert from "node:assert/strict";
import type { ApiError } from "../../shared/core/errors.ts";
import { checkSpeed, readPayee } from "../../shared/domain/providers/payee.ts";
import { asSent, parseBody } from "../../shared/http/parse_input.ts";
import type { IbanInput, PayeeInput } from "../../shared/schema/bank_account.ts";
import { CreateTransferBody } from "../../shared/schema/transfer_body.ts";
import { type Transfer } from "../../shared/schema/transfer.ts";
import type { Change } from "../../shared/store/commit_rows.ts";
import { decideAdvanceTransfer } from "../../shared/sandbox/advance.ts";
import { cancelTransferOf, transferOf } from "../../shared/domain/transfers/create_transfer.ts";
import { decided, refusalOf, requestContext, summaryOf } from "../support/domain/decided_change.ts";
import { type SentBody, testBodies } from "../support/domain/move_case.ts";
import { readBody } from "../support/http/read_body.ts";

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
function send(members: SentBody, livemode = false): Change {
  const value = { amount: 10, currency: "EUR", destination: SEPA, ...members as object };
  const read = readBody(value, CreateTransferBody);
  try {
    return decided(transferOf(parseBody(CreateTransferBody, read), requestContext(livemode)));
  } catch (error) {
    throw asSent(error, read);
  }
}

const toUs = (destination: unknown) => ({ destination });
const toWallet = (wallet: unknown) => ({ currency: "USDC", destination: { wallet } });
/** Members of the body of a transfer, by the field that is refused. */
testBodies("a transfer", [
  ["amount", { amount: undefined }, { amount: 0 }, { amount: 1e12 }, { amount: 1e11 }],
  ["amount_minor", { amount_minor: 1 }],
  ["currency", { currency: "EUX" }, { amount: undefined, currency: "EUX" }, { currency: "USDC" }],
  ["destination", toUs(undefined), toUs({}), toUs({ ...SEPA, ...WALLET })],
  ["destination.iban", toUs({ iban: "DE89 3704 0044 0532 0130 01" })],
  ["destination.iban.iban", toUs({ iban: { iban: "hello" } })],
  ["destination.wallet", toWallet(`0x${"0".repeat(40)}`), toWallet("0x1234")],
  ["destination.wallet.address", toWallet({ address: DEAD.replace(/D$/, "E"), network: "tron" })],
  ["destination.wallet.asset", toWallet({ address: DEAD, asset: "USDT" })],
  ["destination.holder_name", { currency: "USDC", destination: { ...WALLET, holder_name: "Ada" } }],
  ["settlement", { settlement: "later" }],
  ["destination.address", toUs({ iban: BRITISH })],
  ["destination.address.city", toUs({ iban: BRITISH, address: { country: "GB" } })],
  ["speed", { currency: "USD", ...toUs({ iban: IBAN }), speed: "instant" }, { speed: "fast" }],
], send);
Deno.test("transferOf() refuses a settlement, and a payee without a name, with a live key", () => {
  const destination = { iban: IBAN, holder_name: "Ada" };
  const refused = (members: object) => refusalOf(() => send({ destination, ...members }, true));
  assert.equal(refused({ settlement: "manual" }), "invalid_parameter settlement");
  assert.equal(refused(toUs({ iban: IBAN })), "invalid_parameter destination.holder_name");
});
Deno.test("transferOf() repeats no account number in a refusal", () => {
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

/** A create, its events, movements, and members. The last event tells its status. */
const CREATED: [
  body: Record<string, unknown>,
  status: string,
  events: string,
  ledger: string[],
  members?: Partial<Transfer>,
][] = [
  [{}, "completed", "created completed", [OUT, DONE], { speed: "standard" }],
  [{ destination: SWIFT }, "completed", "created completed", [OUT, DONE]],
  [DOLLARS, "completed", "created completed", [OUT, DONE], { speed: null }],
  // The bank returns it, or the chain reverts it.
  [{ destination: RETURNED }, "failed", "created failed", [OUT, BACK], {
    failure_code: "bank_return",
    return_code: "R01",
    destination: { type: "iban", iban: { country: "DE", last4: "0099" } },
  }],
  [{ ...DOLLARS, destination: REVERTED }, "failed", "created failed", [OUT, BACK], {
    failure_code: "onchain_reverted",
    return_code: null,
  }],
  [MANUAL, "pending", "created", [OUT], { failure_code: null, return_code: null }],
  [{ speed: "instant" }, "completed", "created completed", [OUT, DONE], { speed: "instant" }],
  [
    toUs({ iban: BRITISH, holder_name: "Ada", address: ADDRESS }),
    "completed",
    "created completed",
    [OUT, DONE],
    { payee_check: null },
  ],
  [to("Match Ltd"), "completed", "created updated completed", [OUT, DONE], {
    payee_check: "match",
  }],
  [to("No match Ltd"), "pending", "created updated", [OUT], { payee_check: "no_match" }],
  [
    { ...toUs({ iban: { iban: IBAN, holder_name: "Close match Ltd" } }), speed: "instant" },
    "pending",
    "created updated",
    [OUT],
    { payee_check: "close_match", speed: "instant" },
  ],
];
for (const [body, status, events, ledger, members = {}] of CREATED) {
  Deno.test(`transferOf() ${JSON.stringify(body)} → ${status}`, () => {
    const change = send(body);
    const transfer = transferIn(change);
    const types = events.split(" ");
    assertSteps(change, types, ledger, 1);
    assert.equal(change.response.status, 201);
    assert.equal(change.response.body, change.transfer!.body);
    assert.deepEqual({ ...transfer, ...members, status, sequence: types.length }, transfer);
    assert.doesNotMatch(change.transfer!.body, /Ltd|Ada|London|2004/);
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
const cancel = (transfer: Transfer) => decided(cancelTransferOf(transfer, context));
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

type Payee = Parameters<typeof read>[0];
const FRENCH = { iban: IBAN, bic: "BNPAFRPP" };
/** [refused field or null, payees] */
const PAYEES: [param: string | null, ...payees: Payee[]][] = [
  [null, { iban: IBAN }, { iban: IBAN, holder_name: "Ada" }, { iban: NO }],
  // A BIC fits the country of the IBAN, and the territories of that country.
  [null, FRENCH, { iban: IBAN, bic: "bnpafrppxxx" }, { iban: IBAN, bic: "BNPAREPP" }],
  [null, { iban: IBAN, bic: "BNPAMCPP" }, { iban: MC, bic: "BNPAFRPP", address: ADDRESS }],
  [null, { iban: BRITISH, bic: "NWBKJESH", address: ADDRESS }, { iban: FRENCH, bic: "BNPAFRPP" }],
  ["destination.bic", { iban: IBAN, bic: "COBADEFF" }, { iban: IBAN, bic: "NWBKGB2L" }],
  ["destination.bic", { iban: FRENCH, bic: "BNPAFRPPXXX" }],
  ["destination.iban.bic", { iban: { iban: IBAN, bic: "COBADEFF" } }],
  ["destination.holder_name", { iban: { iban: IBAN, holder_name: "Ada" }, holder_name: "Eve" }],
  [null, { iban: BRITISH, address: ADDRESS }, { iban: { iban: BRITISH, address: ADDRESS } }],
  [null, { iban: { iban: BRITISH, address: ADDRESS }, address: ADDRESS }],
  [
    "destination.address",
    { iban: { iban: BRITISH, address: ADDRESS }, address: { ...ADDRESS, city: "Leeds" } },
  ],
  ["destination.address", { iban: BRITISH }, { iban: CH }, { iban: MC }],
  ["destination.iban.iban", { iban: `${IBAN}1` }],
];
const TEST_IBAN = "GB82 WEST 1234 5698 7654 32";
const LIVE = { livemode: true };
/** The same with other options. */
const WITH_OPTIONS: [param: string | null, payee: Payee, options: object][] = [
  [null, { iban: TEST_IBAN }, { currency: "USD" }],
  ["destination.address", { iban: TEST_IBAN, holder_name: "Ada" }, { ...LIVE, currency: "USD" }],
  ["destination.holder_name", { iban: IBAN }, LIVE],
  [null, { iban: IBAN, holder_name: "Ada" }, LIVE],
];
const payees = PAYEES.flatMap(([param, ...all]) => all.map((payee) => [param, payee, {}] as const));
for (const [param, payee, options] of [...payees, ...WITH_OPTIONS]) {
  const given = `${JSON.stringify(payee)} ${JSON.stringify(options)}`;
  Deno.test(`readPayee() ${given}: ${param ?? "taken"}`, () => {
    const expected = param === null ? "none" : `invalid_parameter ${param}`;
    assert.equal(refusalOf(() => read(payee, options)), expected);
  });
}

const NAMES: [payee_check: string | null, ...names: (string | undefined)[]][] = [
  [null, undefined, "Ada Lovelace", "Matchbox Ltd", "No matchbox Ltd", "Ada No match"],
  ["match", "Match", "Match Ltd", "match ltd"],
  ["no_match", "No match", "No match Ltd", "no match ltd"],
  ["close_match", "Close match Ltd"],
];
for (const [payee_check, ...names] of NAMES) {
  Deno.test(`readPayee() payees named ${names.join(", ")}: ${payee_check}`, () => {
    for (const holder_name of names) {
      const payee = { iban: IBAN, ...(holder_name !== undefined && { holder_name }) };
      assert.equal(read(payee).payee_check, payee_check, holder_name);
      if (payee_check) assert.equal(read(payee, { livemode: true }).payee_check, null);
    }
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
