/**
 * Steps for which the model and the service once differed, and steps that found mutations made on
 * purpose. fast-check shrank them. They run before the random steps.
 */

import type { FaultDeclaration } from "./declared_faults.ts";
import type { ChangeStep, Step } from "./model_steps.ts";

const DAY_MS = 86_400_000;

const paid: ChangeStep = {
  do: "create",
  instrument: "card",
  outcome: null,
  amount: 10,
  is_sandbox: false,
};
const move = (move: Extract<ChangeStep, { do: "move" }>["move"], target = 0): ChangeStep => ({
  ...{ do: "move", target, move },
});
const refund = (amount: number | null) => move({ do: "refund", amount });
const send = (change: ChangeStep, key: number | null = null): Step => ({ do: "send", change, key });

const made = (instrument: string): ChangeStep => ({ ...paid, instrument } as ChangeStep);
const capture = (amount: number | null) => move({ do: "capture", amount });
const advance = (to: string) => move({ do: "advance", to });
const declare = (
  on: "request" | "provider",
  fault: string,
  where: FaultDeclaration["where"] = {},
): Step => ({ do: "declare", fault: { on, fault, times: 1, where } });
const clock = (advance_s: number): Step => ({ do: "clock", advance_s, mode: "frozen" });
const dispute = (move: Extract<ChangeStep, { do: "dispute" }>["move"]): Step =>
  send({ do: "dispute", target: 0, move });
const evidence = (text: "winning" | "losing" | "other" | "saved") =>
  dispute({ do: "evidence", text });
const transferOf = (amount: number): ChangeStep => ({
  ...{ do: "transfer", amount, destination: "approved", is_manual: false },
});
const transfer = transferOf(1);

const save = (instrument: string, amount = 10): Step =>
  send({ ...paid, instrument, amount, save: "off_session" } as ChangeStep);
const uses = [false, true].map((off_session) =>
  send({ do: "use", target: 0, amount: 5, off_session })
);
const LOOK: Step = { do: "look" };

/** The cases. The test runs each in its own sandbox and then compares the whole state. */
export const SHRUNK_CASES: [name: string, steps: Step[]][] = [
  [
    "a key is replayed a moment before its day is over, which a replay does not extend",
    // Each step takes a millisecond.
    [send(paid, 0), { do: "pass", ms: DAY_MS - 3 }, send(paid, 0), send(paid, 0)],
  ],
  [
    "a key is new when its day is over, purged or not",
    [send(paid, 0), { do: "pass", ms: DAY_MS - 1 }, send(paid, 0), { do: "purge" }, send(paid, 0)],
  ],
  [
    "a purge within the day forgets no key",
    [send(paid, 0), { do: "pass", ms: DAY_MS - 4 }, { do: "purge" }, send(paid, 0)],
  ],
  [
    "another body after the day is no conflict",
    [send(paid, 0), { do: "pass", ms: DAY_MS }, send({ ...paid, amount: 11 } as ChangeStep, 0)],
  ],
  [
    "a payment goes after thirty days and its money stays",
    [
      send(paid),
      { do: "pass", ms: 30 * DAY_MS },
      send(paid),
      { do: "purge" },
      LOOK,
      send(transferOf(20)),
    ],
  ],
  [
    "a reset forgets keys, and what is made anew under one is kept",
    [send(paid, 0), { do: "reset" }, send(paid, 0), send(paid, 0)],
  ],
  [
    "a collection is due after 14 days, is refunded in part, and comes back months later",
    [
      send(made("sepa_collected")),
      send(made("sepa_collected_returned")),
      send(advance("processing")),
      clock(13 * 86_400),
      LOOK,
      clock(12 * 86_400),
      LOOK,
      send(move({ do: "refund", amount: 4 }, 1)),
      clock(300 * 86_400),
      LOOK,
      send(advance("failed")),
      LOOK,
      clock(400 * 86_400),
      send(made("sepa_collected")),
      clock(400 * 86_400),
      clock(400 * 86_400),
      clock(400 * 86_400),
      send(made("sepa_collected")),
    ],
  ],
  [
    "a dispute is lost after 7 days, and then takes nothing more",
    [
      send(paid),
      send(advance("chargeback")),
      evidence("other"),
      clock(7 * 86_400),
      LOOK,
      dispute({ do: "accept" }),
      evidence("winning"),
    ],
  ],
  [
    "saved evidence decides nothing, and winning evidence comes a second too late",
    [
      clock(1),
      send(paid),
      send(advance("chargeback")),
      evidence("saved"),
      LOOK,
      clock(7 * 86_400 - 1),
      evidence("saved"),
      clock(2),
      evidence("winning"),
    ],
  ],
  [
    "a payment is disputed again after a dispute that was won",
    [
      send(paid),
      send(advance("chargeback")),
      evidence("winning"),
      clock(3_600),
      send(advance("chargeback")),
      clock(7 * 86_400 - 3_600),
      LOOK,
      clock(3_600),
    ],
  ],
  [
    "a transfer above the balance uses no fault up and names none",
    [declare("provider", "timeout"), send(transfer, 0), send(paid), send(paid), send(transfer)],
  ],
  [
    "after a timeout of the provider the result comes after 60 s",
    ["card", "card_declined", "sepa_returned", "card_3ds", "card_captured_later"].flatMap((
      name,
    ) => [
      declare("provider", "timeout", { operation: "authorize" }),
      send(made(name)),
      LOOK,
      clock(60),
      LOOK,
    ]),
  ],
  [
    "captures, refunds and transfers come after a timeout, and a decline refuses them",
    [
      send(made("card_captured_later")),
      declare("provider", "declined", { operation: "capture" }),
      send(capture(4)),
      declare("provider", "timeout", { operation: "capture" }),
      send(capture(4)),
      clock(60),
      declare("provider", "failed", { operation: "refund" }),
      send(refund(1)),
      declare("provider", "timeout", { operation: "refund" }),
      send(refund(2)),
      LOOK,
      clock(60),
      declare("provider", "timeout", { operation: "transfer" }),
      send(transfer),
      clock(60),
    ],
  ],
  [
    "a response that is lost is under its key, and a refusal before is not",
    [
      declare("request", "server_error_after", { idempotency_key: "key-0" }),
      send(paid, 0),
      send(paid, 0),
      declare("request", "server_error_before", { idempotency_key: "key-1" }),
      send(paid, 1),
      send(paid, 1),
      declare("request", "rate_limited", { path: "/api-v1-payments/v1/transfers" }),
      send(refund(1)),
      send(transfer),
      send(transfer),
      { do: "send", change: refund(2), key: 2, fault: "server_error_after" },
      send(refund(2), 2),
    ],
  ],
  [
    "an advance ends an authorization that was overdue before it, and then deletes it",
    [
      send(made("card_captured_later")),
      { do: "pass", ms: 30 * DAY_MS },
      { do: "clock", advance_s: 1, mode: "real" },
    ],
  ],
  [
    "an authorization that comes late in an advance ends 7 days after its own time",
    [
      declare("provider", "timeout", { operation: "authorize" }),
      send(made("card_captured_later")),
      { do: "pass", ms: 10 * DAY_MS },
      { do: "clock", advance_s: 1, mode: "real" },
    ],
  ],
  [
    "saved cards pay with the payer and without, also after a payment of 0",
    ["card", "card_3ds", "token_3ds", "token_declined_later", "card_late", "token_disputed"]
      .flatMap((name) => [0, 10].flatMap((amount) => [save(name, amount), ...uses])),
  ],
  [
    "a save that is declined or not authenticated leaves an instrument that has failed",
    [
      ...["card_declined", "token_no_funds"].flatMap((name) => [save(name), ...uses]),
      send({ ...paid, outcome: "declined", save: "off_session" } as ChangeStep),
      ...uses,
      ...[0, 10].flatMap((amount) => [
        save("token_3ds", amount),
        send(move({ do: "authenticate", result: "failure" })),
        ...uses,
      ]),
    ],
  ],
  [
    "an instrument whose save has no response is pending, and active with the late result",
    [declare("provider", "timeout"), save("card"), ...uses, clock(60), ...uses, LOOK],
  ],
  [
    "banks end mandates, and those that are not used end after 36 months",
    [
      ...["sepa_revoked", "sepa_closed", "sepa_no_funds", "sepa_returned_later", "sepa_saved"]
        .flatMap((name) => [save(name), ...uses]),
      save("sepa_saved", 0),
      clock(20 * 86_400),
      LOOK,
      ...uses,
      // To 5 April, 20 days after the due date.
      clock(14.5 * 86_400),
      LOOK,
      ...Array.from({ length: 4 }, () => clock(300 * 86_400)),
      LOOK,
      ...uses,
    ],
  ],
  [
    "an end is final, and a key that was refused an instrument is free",
    [
      send({ ...paid, instrument: "token_3ds", save: "on_session" } as ChangeStep),
      send({ do: "end", target: 0 }, 0),
      send(move({ do: "authenticate", result: "success" })),
      ...uses,
      send({ do: "end", target: 0 }, 0),
      send({ do: "end", target: 0 }, 0),
      send({ do: "end", target: 0 }, 1),
      ...uses,
    ],
  ],
];
